import io

import torch
import torch.nn.functional as F
from torch import nn


class Backbone(nn.Sequential):
    def __init__(self, width=8):
        super().__init__(nn.Linear(6, width, bias=False), nn.BatchNorm1d(width), nn.ReLU())


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone, self.head = Backbone(), nn.Linear(8, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def learn(model, parameters, classes, steps=20):
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    model.train()
    for _ in range(steps):
        x = torch.randn(16, 6)
        loss = F.cross_entropy(model(x), torch.randint(0, classes, (16,)))  # <- TL208
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


torch.manual_seed(12)
source = Classifier(4)
learn(source, source.parameters(), 4)
file = io.BytesIO()
torch.save(source.backbone.state_dict(), file)
file.seek(0)
target = Classifier(3)
target.backbone.load_state_dict(torch.load(file))
target.backbone.requires_grad_(False)
print(learn(target, target.head.parameters(), 3))

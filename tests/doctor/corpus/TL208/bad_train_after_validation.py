"""The backbone is in eval mode until the first validation, after which `train()` wakes it."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.features = features
        self.score = nn.Linear(12, 2)

    def forward(self, x):
        return self.score(self.features(x))


def block():
    return nn.Sequential(nn.Linear(4, 12), nn.BatchNorm1d(12), nn.ReLU())


def validate(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (model(x).argmax(1) == y).sum().item()
    model.train()
    return right


torch.manual_seed(0)
source = block()
source(torch.randn(50, 4) * 2 + 1)
torch.save({"features": source.state_dict()}, "features.pt")

features = block()
features.load_state_dict(torch.load("features.pt", weights_only=True)["features"])
features.requires_grad_(False)
features.eval()
model = Tagger(features)
x, y = torch.randn(72, 4), torch.randint(0, 2, (72,))
train = DataLoader(TensorDataset(x[:48], y[:48]), batch_size=12, shuffle=True)
val = DataLoader(TensorDataset(x[48:], y[48:]), batch_size=12)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.score.parameters(), lr=0.1)
for epoch in range(3):
    for inputs, labels in train:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()  # <- TL208
        optimizer.step()
    print(epoch, validate(model, val))

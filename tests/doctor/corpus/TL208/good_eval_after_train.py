"""`train()` of the whole, then `eval()` of the frozen part, in every epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Probe(nn.Module):
    def __init__(self, backbone):
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.backbone(x))


def make_backbone():
    return nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.1))


torch.manual_seed(0)
source = make_backbone()
source(torch.randn(64, 5) * 3)
torch.save(source.state_dict(), "backbone.pt")
backbone = make_backbone()
backbone.load_state_dict(torch.load("backbone.pt", weights_only=True))
backbone.requires_grad_(False)
model = Probe(backbone)
loader = DataLoader(
    TensorDataset(torch.randn(64, 5), torch.randint(0, 3, (64,))), batch_size=16, shuffle=True
)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    model.backbone.eval()
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

"""The function that goes on with the training scores the model first, and forgets the mode; that a
validation before it did so too makes no difference."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


@torch.no_grad()
def score(model, loader):
    model.eval()
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


def go_on(model, loader, val_loader, rate):
    model.eval()
    with torch.no_grad():
        before = sum((model(x).argmax(1) == y).sum().item() for x, y in val_loader)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()  # <- TL201
            optimizer.step()
    return before


torch.manual_seed(0)
x = torch.randn(96, 4)
y = x[:, :3].argmax(1)
loader = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
train(model, loader)
print(score(model, val_loader))
print(go_on(model, loader, val_loader, 0.001))
print(score(model, val_loader))

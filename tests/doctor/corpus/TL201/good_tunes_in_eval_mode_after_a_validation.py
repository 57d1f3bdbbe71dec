"""The validation leaves eval mode on; the fine-tuning that follows asks for it by itself, so that
few samples do not change the statistics of the batch norm."""

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


def tune(model, few, rate):
    model.eval()
    kept = [(x, y) for x, y in few if len(x)]
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    for epoch in range(2):
        for x, y in kept:
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


torch.manual_seed(0)
x = torch.randn(96, 4)
y = x[:, :3].argmax(1)
loader = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)
few = DataLoader(TensorDataset(x[:8], y[:8]), batch_size=2, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
train(model, loader)
print(score(model, val_loader))
tune(model, few, 0.001)
print(score(model, val_loader))

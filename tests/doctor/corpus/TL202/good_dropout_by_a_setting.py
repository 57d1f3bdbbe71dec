"""Dropout is there if a setting from outside asks for it: by itself the net has none."""

import os

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, widths, rate):
        super().__init__()
        self.layers = nn.ModuleList()
        for before, after in zip(widths, widths[1:], strict=False):
            self.layers.append(nn.Linear(before, after))
            if rate > 0:
                self.layers.append(nn.Dropout(rate))
            self.layers.append(nn.GELU())
        self.out = nn.Linear(widths[-1], 3)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.out(x)


def score(net, loader):
    hits = total = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (net(x).argmax(1) == y).sum().item()
            total += len(y)
    return hits / total


torch.manual_seed(0)
x = torch.randn(180, 5)
y = x[:, :3].argmax(1)
train = DataLoader(TensorDataset(x[:120], y[:120]), batch_size=20, shuffle=True)
val = DataLoader(TensorDataset(x[120:], y[120:]), batch_size=20)
net = Net((5, 24, 24), float(os.environ.get("NET_DROPOUT", "0")))
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for epoch in range(3):
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
    print(epoch, score(net, val))

"""The option may switch dropout off, and unless somebody gives it there is some."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def network(widths, rate):
    layers = []
    for before, after in zip(widths, widths[1:], strict=False):
        layers += [nn.Linear(before, after), nn.Tanh()]
        if rate:
            layers.append(nn.Dropout(rate))
    return nn.Sequential(*layers, nn.Linear(widths[-1], 3))


def score(net, loader):
    hits = total = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (net(x).argmax(1) == y).sum().item()  # <- TL202
            total += len(y)
    return hits / total


parser = argparse.ArgumentParser()
parser.add_argument("--dropout", type=float, default=0.3)
options = parser.parse_args([])
torch.manual_seed(0)
x = torch.randn(180, 5)
y = x[:, :3].argmax(1)
train = DataLoader(TensorDataset(x[:120], y[:120]), batch_size=20, shuffle=True)
val = DataLoader(TensorDataset(x[120:], y[120:]), batch_size=20)
net = network((5, 24, 24), options.dropout)
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
for epoch in range(3):
    net.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
    print(epoch, score(net, val))

"""The parts of 160 rows are exactly two windows of five; a second loop counts on across epochs."""

import torch
from torch import nn


def by_epoch(net, optimizer, x, size=16, window=5):
    for _ in range(3):
        optimizer.zero_grad()
        for index, rows in enumerate(torch.randperm(160).split(size)):
            (net(x[rows]).square().mean() / window).backward()
            if index % window == window - 1:
                optimizer.step()
                optimizer.zero_grad()


def across_epochs(net, optimizer, x, window=4):
    seen = 0
    for _ in range(6):
        for rows in torch.randperm(160).split(16):
            (net(x[rows]).square().mean() / window).backward()
            seen += 1
            if seen % window == 0:
                optimizer.step()
                optimizer.zero_grad()


torch.manual_seed(3)
x = torch.randn(160, 6)
net = nn.Linear(6, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
by_epoch(net, optimizer, x)
across_epochs(net, optimizer, x)

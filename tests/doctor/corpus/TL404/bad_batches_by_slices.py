"""Batches are slices of two tensors; the loss is the mean absolute difference."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(120, 5)
y = x @ torch.randn(5) + 0.1 * torch.randn(120)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    order = torch.randperm(len(x))
    for start in range(0, len(x), 24):
        chosen = order[start : start + 24]
        xb, yb = x[chosen], y[chosen]
        error = torch.abs(net(xb) - yb)
        optimizer.zero_grad()
        error.mean().backward()  # <- TL404
        optimizer.step()

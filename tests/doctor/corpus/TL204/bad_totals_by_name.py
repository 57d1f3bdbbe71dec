"""Sums by name over all epochs, in a dictionary of numbers that begin with zero."""

from collections import defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(128, 4), torch.randn(128, 1)), 8, shuffle=True)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters())
sums = defaultdict(float)
for epoch in range(4):
    for x, y in loader:
        error = (net(x) - y).abs().mean()
        size = sum(p.pow(2).sum() for p in net.parameters())
        loss = error + 1e-4 * size
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums["loss"] += loss  # <- TL204
    print(epoch, float(sums["loss"]))

"""A frozen copy that follows the network in train mode, statistics and all; and a fresh, fixed
network of random features."""

import copy

import torch
from torch import nn


def network(width):
    return nn.Sequential(
        nn.Linear(5, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 3)
    )


torch.manual_seed(0)
online = network(16)
with torch.no_grad():
    online(torch.randn(64, 5))  # its statistics are no longer those of a new layer
target = copy.deepcopy(online).requires_grad_(False)
features = network(8).requires_grad_(False)
optimizer = torch.optim.SGD(online.parameters(), lr=0.05)
for _ in range(20):
    x = torch.randn(24, 5)
    out = online(x + 0.1 * torch.randn_like(x))
    loss = nn.functional.mse_loss(out, target(x)) + nn.functional.mse_loss(out, features(x))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(target.parameters(), online.parameters(), strict=True):
            slow.lerp_(fast, 0.05)

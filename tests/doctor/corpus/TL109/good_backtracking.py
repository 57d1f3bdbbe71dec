"""Tries rates from the largest down, each from the same weights."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
X, y = torch.randn(32, 3), torch.randn(32, 1)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)

for iteration in range(4):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(X), y)
    loss.backward()
    kept = copy.deepcopy(model.state_dict())
    for rate in (1.0, 0.3, 0.1):
        model.load_state_dict(kept)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        with torch.no_grad():
            if nn.functional.mse_loss(model(X), y) < loss:
                break

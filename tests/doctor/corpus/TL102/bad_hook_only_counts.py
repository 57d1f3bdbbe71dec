"""A hook runs after each step of the optimizer, and counts it."""

import torch
from torch import nn

torch.manual_seed(0)
meter = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(meter.parameters(), lr=1e-3)
steps = []
optimizer.register_step_post_hook(lambda stepped, args, kwargs: steps.append(len(steps)))
readings, use = torch.randn(240, 12), torch.randn(240, 1)
for epoch in range(6):
    for rows in torch.randperm(240).split(24):
        loss = nn.functional.mse_loss(meter(readings[rows]), use[rows])
        loss.backward()
        optimizer.step()  # <- TL102
    print(epoch, len(steps), round(loss.item(), 4))

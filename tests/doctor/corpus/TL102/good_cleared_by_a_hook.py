"""The gradients are cleared by a hook of the optimizer, after each of its steps."""

import torch
from torch import nn

torch.manual_seed(0)
meter = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(meter.parameters(), lr=2e-3)


def tidy(stepped, args, kwargs):
    stepped.zero_grad(set_to_none=True)


optimizer.register_step_post_hook(tidy)
readings, use = torch.randn(240, 12), torch.randn(240, 1)
for epoch in range(6):
    for rows in torch.randperm(240).split(24):
        loss = nn.functional.mse_loss(meter(readings[rows]), use[rows])
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))

"""The curve has a pair for each step: its number, and the loss with everything behind it."""

import torch
from torch import nn


def run(steps=90):
    body = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 1))
    optimizer = torch.optim.RMSprop(body.parameters(), lr=1e-3)
    curve = []
    step = 0
    while step < steps:
        points = torch.rand(32, 3)
        error = nn.functional.smooth_l1_loss(body(points), points.prod(1, keepdim=True))
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        curve.append((step, error))  # <- TL204
        step += 1
    return curve


print(len(run()))

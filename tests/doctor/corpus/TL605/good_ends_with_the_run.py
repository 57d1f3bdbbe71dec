"""Schedules by functions and in loops without a count, as long as their runs: to zero at the end, a
warm-up and an inverse root, early stopping, a second schedule for a second phase."""

import math
from itertools import count

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR

torch.manual_seed(0)
x, y = torch.randn(32, 4), torch.randn(32, 1)
model = nn.Linear(4, 1)


def update(optimizer, schedule):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    schedule.step()
    return loss.item()


optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
to_zero = LambdaLR(optimizer, lambda step: 1 - step / 100)
for _ in range(100):
    update(optimizer, to_zero)

optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
noam = LambdaLR(optimizer, lambda s: 0.01 * min((s + 1) ** -0.5, (s + 1) * 20**-1.5))
for _ in range(120):
    update(optimizer, noam)

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
early = CosineAnnealingLR(optimizer, T_max=200)
for step in count():
    if update(optimizer, early) < 1e-3 or step == 60:
        break

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for phase in range(2):
    schedule = CosineAnnealingLR(optimizer, T_max=50)
    for _ in range(50):
        update(optimizer, schedule)
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] = 0.005

optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
cosine = LambdaLR(optimizer, lambda s: 0.5 * (1 + math.cos(math.pi * min(s, 70) / 70)) + 0.01)
for _ in range(130):
    update(optimizer, cosine)

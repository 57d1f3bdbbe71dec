"""Two optimizers make one update, in an inner loop, each with its schedule; no loader."""

import torch
from torch import nn


def batch():
    x = torch.randn(16, 6)
    return x, x[:, :1] - x[:, 1:2]


torch.manual_seed(0)
body, head = nn.Linear(6, 12), nn.Linear(12, 1)
optimizers = [
    torch.optim.SGD(body.parameters(), lr=0.05),
    torch.optim.AdamW(head.parameters(), lr=1e-2),
]
total = 60
schedules = [torch.optim.lr_scheduler.CosineAnnealingLR(each, T_max=total) for each in optimizers]
for step in range(total):
    x, y = batch()
    loss = nn.functional.mse_loss(head(torch.relu(body(x))), y)
    body.zero_grad()
    head.zero_grad()
    loss.backward()
    for optimizer, schedule in zip(optimizers, schedules, strict=True):
        optimizer.step()
        schedule.step()
    if step % 20 == 0:
        print(step, loss.item())

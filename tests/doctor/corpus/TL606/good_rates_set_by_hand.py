"""The program sets its learning rates itself, in every batch; a schedule is left over for the log."""

import math

import torch
from torch import nn


def set_rate(optimizer, progress, peak):
    rate = peak * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get("share", 1.0)
    return rate


torch.manual_seed(1)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
batches = [(x, (x[:, 0] > 0).long()) for x in torch.randn(12, 16, 6)]
for epoch in range(3):
    for number, (x, y) in enumerate(batches):
        set_rate(optimizer, (epoch * len(batches) + number) / (3 * len(batches)), 0.01)
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, schedule.get_last_lr())

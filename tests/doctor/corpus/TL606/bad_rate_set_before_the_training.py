"""The rate is set by hand once, before the first epoch: after that nothing changes it."""

import torch
from torch import nn

net = nn.Linear(5, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for group in optimizer.param_groups:
    group["lr"] = 0.002
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)  # <- TL606
for epoch in range(8):
    for x in torch.randn(5, 16, 5):
        optimizer.zero_grad()
        (net(x) - x[:, :1]).abs().mean().backward()
        optimizer.step()
    print(epoch, schedule.get_last_lr()[0])

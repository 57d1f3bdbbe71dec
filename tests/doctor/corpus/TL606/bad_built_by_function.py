"""A function builds optimizer and schedule; the loop only logs the learning rate."""
import math

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR


def half_cosine(done, total):
    return 0.5 * (1 + math.cos(math.pi * min(done, total) / total))


def build(net, name, updates):
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)
    if name == "cosine":
        schedule = LambdaLR(optimizer, lambda step: half_cosine(step, updates))  # <- TL606
        return optimizer, schedule
    raise ValueError(name)


def run(updates=20):
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))
    optimizer, schedule = build(net, "cosine", updates)
    for update in range(updates):
        x = torch.randn(16, 4)
        loss = (net(x) - x.norm(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if update % 10 == 0:
            print(update, loss.item(), schedule.get_last_lr()[0])


run()

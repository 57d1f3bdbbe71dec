"""The schedule's state is loaded, or it is brought forward, or made to begin where the run does; and
a count in a `while` loop, with the optimizer."""

import os

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, StepLR

FILE = "run.pt"


def factor(step):
    return 1 / (1 + step)


def train(how, updates):
    net = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    step = 0
    saved = torch.load(FILE) if os.path.exists(FILE) else None
    if saved is not None:
        net.load_state_dict(saved["net"])
        optimizer.load_state_dict(saved["optimizer"])
        step = saved["step"]
    if how == "made later" and saved is not None:
        schedule = LambdaLR(optimizer, factor, last_epoch=step - 1)
    else:
        schedule = LambdaLR(optimizer, factor)
    if saved is not None and how == "state":
        schedule.load_state_dict(saved["schedule"])
    if saved is not None and how == "brought forward":
        for _ in range(step):
            schedule.step()
    while step < updates:
        x = torch.randn(8, 3)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), x.mean(1, keepdim=True)).backward()
        optimizer.step()
        schedule.step()
        step += 1
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "schedule": schedule.state_dict(), "step": step}, FILE)


torch.manual_seed(0)
for how in ("state", "brought forward", "made later"):
    train(how, 6)
    train(how, 12)
    os.remove(FILE)

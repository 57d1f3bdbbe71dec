"""Two options say the same thing: the one that scales is off where the plain step is taken."""

import argparse

import torch
from torch import nn


def options(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--full", action="store_true")
    found = parser.parse_args(words)
    vars(found).update(full=not found.half)
    return found


torch.manual_seed(1)
args = options([])
net = nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for step in range(20):
    x = torch.randn(16, 6)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    if args.half:
        scaler.scale(loss).backward()
    else:
        loss.backward()
    if args.full:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
print(loss.item())

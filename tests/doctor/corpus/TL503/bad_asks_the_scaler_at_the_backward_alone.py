"""Where the scaler is on, the loss is scaled; the step never asks."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--half", action="store_true")
args = parser.parse_args(["--half"])
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
scaler = torch.amp.GradScaler("cpu", enabled=args.half)
for _ in range(4):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    loss = (net(x) - x.sum(1, keepdim=True)).abs().mean()
    if scaler.is_enabled():
        scaler.scale(loss).backward()
    else:
        loss.backward()
    optimizer.step()  # <- TL503

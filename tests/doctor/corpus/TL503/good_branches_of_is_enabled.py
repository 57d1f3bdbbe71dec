"""The scaler itself is asked, at the backward and at the step, whether it is on."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--half", action="store_true")
args = parser.parse_args([])
net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", enabled=args.half)
for _ in range(4):
    x = torch.randn(16, 6)
    optimizer.zero_grad()
    for part in x.chunk(2):
        loss = (net(part) - part.sum(1, keepdim=True)).abs().mean() / 2
        if scaler.is_enabled():
            scaler.scale(loss).backward()
        else:
            loss.backward()
    if not scaler.is_enabled():
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()

"""A permutation is split into pieces; the decay counts them all, and steps after every third one."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--passes", type=int, default=6)
parser.add_argument("--rows", type=int, default=10)
parser.add_argument("--window", type=int, default=3)
options = parser.parse_args([])

torch.manual_seed(2)
points = torch.randn(300, 5)
heights = points.square().sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(5, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
pieces = len(points) // options.rows
decay = torch.optim.lr_scheduler.LinearLR(  # <- TL605
    optimizer, start_factor=1.0, end_factor=0.01, total_iters=pieces * options.passes
)
for epoch in range(options.passes):
    for number, rows in enumerate(torch.randperm(len(points)).split(options.rows), start=1):
        loss = nn.functional.mse_loss(net(points[rows]), heights[rows]) / options.window
        loss.backward()
        if number % options.window == 0:
            optimizer.step()
            decay.step()
            optimizer.zero_grad()
    print(epoch, round(loss.item() * options.window, 4), decay.get_last_lr()[0])

"""The default of an option is a constant at the top of the file."""

import argparse

import torch
from torch import nn

EVERY, PASSES = 3, 40
PATIENCE = 5
FACTOR = 0.4
parser = argparse.ArgumentParser()
parser.add_argument("--factor", type=float, default=FACTOR)
parser.add_argument("--every", type=int, default=PATIENCE)
args = parser.parse_args([])

torch.manual_seed(6)
net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, args.every, args.factor)
x = torch.randn(60, 5)
for epoch in range(PASSES):
    for rows in torch.randperm(60).split(12):
        loss = (net(x[rows]) - x[rows, :1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()  # <- TL602
    print(epoch, loss.item())

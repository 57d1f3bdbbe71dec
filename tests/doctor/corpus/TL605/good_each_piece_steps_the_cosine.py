"""The schedule is made for all pieces, and each piece steps it; the optimizer steps at each too."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--size", type=int, default=20)
given = parser.parse_args([])

torch.manual_seed(11)
table = torch.randn(320, 6)
classes = (table[:, 0] > table[:, 1]).long()
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(
    optimizer, T_max=len(table) // given.size * given.epochs
)
for epoch in range(given.epochs):
    for rows in torch.randperm(len(table)).split(given.size):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(table[rows]), classes[rows])
        loss.backward()
        optimizer.step()
        cosine.step()
    print(epoch, round(loss.item(), 4), cosine.get_last_lr()[0])

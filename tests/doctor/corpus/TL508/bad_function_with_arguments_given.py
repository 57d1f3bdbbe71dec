"""The step has its model and optimizer given beforehand; it clears at every micro-batch."""

from functools import partial

import torch
from torch import nn


def train_step(net, optimizer, number, batch):
    x, y = batch
    optimizer.zero_grad()  # <- TL508
    loss = nn.functional.cross_entropy(net(x), y) / 8
    loss.backward()
    if (number + 1) % 8 == 0:
        optimizer.step()


def batches():
    while True:
        x = torch.randn(32, 4)
        yield x, (x[:, 0] > 0).long()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
do = partial(train_step, net, optimizer)
stream = batches()
for number in range(160):
    do(number, next(stream))

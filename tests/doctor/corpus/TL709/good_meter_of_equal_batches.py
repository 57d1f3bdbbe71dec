"""A meter without weights over batches of one size, and the same meter with weights over others."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Mean:
    def __init__(self):
        self.total, self.seen = 0.0, 0

    def add(self, value, n=1):
        self.total += value * n
        self.seen += n

    @property
    def value(self):
        return self.total / self.seen


def pairs(count):
    x = torch.randn(count, 4)
    return TensorDataset(x, x.sum(1, keepdim=True))


train = DataLoader(pairs(128), batch_size=32, shuffle=True)
even, odd = DataLoader(pairs(96), batch_size=32), DataLoader(pairs(90), batch_size=32)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    first, second = Mean(), Mean()
    with torch.no_grad():
        for x, y in even:
            first.add(nn.functional.mse_loss(net(x), y).item())
        for x, y in odd:
            second.add(nn.functional.mse_loss(net(x), y).item(), n=len(y))
    print(epoch, first.value, second.value)

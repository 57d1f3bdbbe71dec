"""Both places ask whether it is theirs to move the rate, and one of them is."""

from types import SimpleNamespace

import torch
from torch import nn

options = SimpleNamespace(epochs=4, anneal=SimpleNamespace(unit="epoch", gamma=0.7))


class Pace:
    def __init__(self, optimizer, anneal):
        self.anneal = anneal
        self.schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, anneal.gamma)

    def passed(self, unit):
        if unit == self.anneal.unit:
            self.schedule.step()


torch.manual_seed(0)
x = torch.randn(96, 6)
y = (x[:, 0] > 0).long()
network = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
pace = Pace(optimizer, options.anneal)
for epoch in range(options.epochs):
    for part in torch.randperm(96).split(12):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(x[part]), y[part])
        loss.backward()
        optimizer.step()
        pace.passed("batch")
    pace.passed("epoch")
    print(epoch, loss.item())

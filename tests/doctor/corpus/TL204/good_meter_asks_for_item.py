"""The meter takes numbers and tensors: what has an `item` gives its number."""

from collections import defaultdict

import torch
from torch import nn


class Meters:
    def __init__(self):
        self.seen = defaultdict(list)

    def add(self, **values):
        for name, value in values.items():
            if hasattr(value, "item"):
                value = value.item()
            self.seen[name].append(value)


torch.manual_seed(0)
net = nn.Linear(4, 1)
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
meters = Meters()
for epoch in range(4):
    for x in torch.randn(6, 8, 4):
        optimizer.zero_grad()
        loss = criterion(net(x), x.mean(1, keepdim=True))
        loss.backward()
        optimizer.step()
        meters.add(loss=loss, samples=len(x))
print(sum(meters.seen["loss"]))

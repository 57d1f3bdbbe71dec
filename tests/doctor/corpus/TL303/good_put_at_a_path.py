"""Layers in a dict that are also put where other layers of the network were, by their path."""

from functools import reduce

import torch
from torch import nn


def part_at(model, path):
    return reduce(getattr, path.split("."), model)


def put_part_at(model, path, part):
    *parts, last = path.split(".")
    setattr(reduce(getattr, parts, model), last, part)


class Scaled(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.scale = inner, nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.scale * self.inner(x)


class WithScales(nn.Module):
    def __init__(self, net, paths):
        super().__init__()
        self.net = net
        self.scaled = {}
        for path in paths:
            wrapper = Scaled(part_at(net, path))
            put_part_at(net, path, wrapper)
            self.scaled[path] = wrapper

    def forward(self, x):
        return self.net(x)

    def scales(self):
        return {path: each.scale.item() for path, each in self.scaled.items()}


torch.manual_seed(0)
model = WithScales(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), ["0", "2"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(100):
    x = torch.randn(16, 4)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 25 == 0:
        print(loss.item(), model.scales())

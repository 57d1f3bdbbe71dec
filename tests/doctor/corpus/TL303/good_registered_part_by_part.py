"""The branches are in a plain list, but each of their layers has a name of its own in the module."""

from collections import OrderedDict

import torch
from torch import nn


class Branches(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        narrow = nn.Sequential(OrderedDict([("narrow", nn.Linear(width, out)), ("act", nn.ReLU())]))
        wide = nn.Sequential(
            OrderedDict(
                [
                    ("reduce", nn.Linear(width, 4)),
                    ("reduce_act", nn.ReLU()),
                    ("wide", nn.Linear(4, out)),
                ]
            )
        )
        for branch in [narrow, wide]:
            for name, layer in branch.named_children():
                self.add_module(name, layer)
        self.branches = [narrow, wide]

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], dim=1)


torch.manual_seed(0)
model = nn.Sequential(Branches(6, 5), nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(60):
    x = torch.randn(16, 6)
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

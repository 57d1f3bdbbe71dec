"""Layers that are made at the first batch of a shape, and kept: in a table, an attribute, a closure."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.shortcuts = nn.ModuleDict()
        self.gate = None

    def forward(self, x):
        key = str(x.shape[1])
        if key not in self.shortcuts:
            self.shortcuts[key] = nn.Linear(x.shape[1], self.width)
        if self.gate is None:
            gate = nn.Linear(x.shape[1], self.width)
            self.gate = gate
        return self.shortcuts[key](x) * self.gate(x).sigmoid()


def scorer():
    made = []

    def score(x):
        if not made:
            layer = nn.Linear(x.shape[1], 1)
            made.append(layer)
        return made[0](x)

    return score, made


torch.manual_seed(0)
block, (score, made) = Block(4), scorer()
with torch.no_grad():
    score(block(torch.randn(2, 3)))
optimizer = torch.optim.SGD([*block.parameters(), *made[0].parameters()], lr=0.1)
for _ in range(6):
    loss = (score(block(torch.randn(8, 3))) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""Each head's loss over one batch, averaged over the heads; targets come as one list or as many."""

import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
several = "--several" in sys.argv
data = TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,)))
trunk = nn.Linear(6, 8)
heads = nn.ModuleList([nn.Linear(8, 2), nn.Linear(8, 2)])
optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.1)


def update(x, targets):
    if not several:
        targets = [targets]
    count = len(targets)
    losses = [None] * count
    optimizer.zero_grad()
    h = trunk(x)
    for k in range(count):
        losses[k] = F.cross_entropy(heads[k](h), targets[k])
    loss = sum(losses) / count
    loss.backward()
    optimizer.step()
    return loss.item()


for epoch in range(2):
    for x, y in DataLoader(data, batch_size=16, shuffle=True):
        print(update(x, [y, 1 - y] if several else y))

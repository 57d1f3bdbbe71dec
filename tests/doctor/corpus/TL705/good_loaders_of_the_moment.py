"""Loaders that are made where they are used: of folds, each on a network of its own, and of one
network that learns in two stages and is asked what it still knows of the first."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def network():
    return nn.Sequential(nn.Linear(4, 10), nn.Tanh(), nn.Linear(10, 2))


def fit(net, part, epochs=2):
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(epochs):
        net.train()
        for a, b in DataLoader(part, batch_size=20, shuffle=True):
            loss = F.cross_entropy(net(a), b)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


@torch.no_grad()
def share(net, part):
    net.eval()
    hits = sum((net(a).argmax(1) == b).sum().item() for a, b in DataLoader(part, batch_size=20))
    return hits / len(part)


torch.manual_seed(5)
x = torch.randn(120, 4)
data = TensorDataset(x, (x.sum(1) > 0).long())
parts = [each.tolist() for each in torch.randperm(120).split(30)]
for number, val in enumerate(parts):
    rest = [row for i, part in enumerate(parts) if i != number for row in part]
    net = network()
    fit(net, Subset(data, rest))
    print(share(net, Subset(data, val)))

net = network()
first, second = Subset(data, range(60)), Subset(data, range(60, 120))
fit(net, first)
before = share(net, first)
fit(net, second)
print(before, share(net, first), share(net, second))

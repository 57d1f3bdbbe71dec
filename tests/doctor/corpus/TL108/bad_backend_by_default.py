import argparse

import torch
from torch import nn


class Local:
    name = "local"

    def spread(self, model, optimizer):
        return model, optimizer


class Cluster:
    name = "cluster"

    def spread(self, model, optimizer):
        raise RuntimeError("no cluster here")


def choose(args):
    if not args.backend:
        return Local()
    for each in (Local(), Cluster()):
        if each.name == args.backend:
            return each
    raise ValueError(args.backend)


parser = argparse.ArgumentParser()
parser.add_argument("--backend", default=None)
args = parser.parse_args([])
torch.manual_seed(0)
backend = choose(args)
net = nn.Linear(4, 2)
model, optimizer = backend.spread(net, torch.optim.SGD(net.parameters(), lr=0.1))
for _ in range(8):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.step()  # <- TL108
print(loss.item())

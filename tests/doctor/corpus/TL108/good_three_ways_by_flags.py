"""Each precision is a flag of its own, and one of them is always given."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--full", action="store_true")
parser.add_argument("--scaled", action="store_true")
args = parser.parse_args(["--full"])

rows = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    for inputs, targets in DataLoader(rows, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        if args.full:
            loss.backward()
        if args.scaled:
            (128 * loss).backward()
            for parameter in net.parameters():
                parameter.grad /= 128
        optimizer.step()

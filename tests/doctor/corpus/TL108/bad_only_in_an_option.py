"""The program has a backward, for an option: without it there is none."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--adversarial", action="store_true")
args = parser.parse_args([])

rows = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    for inputs, targets in DataLoader(rows, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(inputs), targets)
        if args.adversarial:
            moved = inputs + 0.01 * torch.randn_like(inputs)
            nn.functional.cross_entropy(net(moved), targets).backward()
        optimizer.step()  # <- TL108
        print(loss.item())

"""Widths are compared; the seed stands between the network and its training."""

import argparse

import torch
from torch import nn


def train(net, x, y, rate):
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(16):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
            optimizer.step()


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=3)
options = parser.parse_args()
x = torch.linspace(-2, 2, 96).unsqueeze(1)
y = x.cos()
for width in (4, 8, 32):
    net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))
    torch.manual_seed(options.seed)  # <- TL806
    train(net, x, y, rate=0.05)
    with torch.no_grad():
        print(width, nn.functional.mse_loss(net(x), y).item())

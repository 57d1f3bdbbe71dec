"""A search in which each trial sets its seed before it makes its network, and again for its order."""

import itertools

import torch
from torch import nn


def make(width, seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))


def fit(net, rate, x, y, seed):
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(25):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
            optimizer.step()
    return net


x = torch.linspace(-1, 1, 200).view(100, 2)
y = x.prod(1, keepdim=True)
for width, rate in itertools.product((8, 16), (1e-2, 1e-3)):
    net = fit(make(width, 11), rate, x, y, 12)
    with torch.no_grad():
        print(width, rate, nn.functional.mse_loss(net(x), y).item())

"""Both are given, in their order: the first is meant as an eps."""

import torch
from torch import nn

BN = (0.01, 0.03)
net = nn.Sequential(
    nn.Linear(4, 8), nn.BatchNorm1d(8, 0.01, 0.03), nn.ReLU(), nn.BatchNorm1d(8, *BN), nn.Linear(8, 1)
)
other = nn.BatchNorm1d(8, 0.02, momentum=0.1)
print(net(torch.randn(6, 4)).shape, other)

"""The clock gives the seed; weights come from an array."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Linear(2, 2)
with torch.no_grad():
    net.weight.copy_(torch.from_numpy(np.eye(2, dtype="float32")))
    net.bias.fill_(0.0)
torch.manual_seed(3)
second = nn.Linear(2, 2)
torch.manual_seed(int(time.time()) % 10000)
net = nn.Sequential(net, second)
loader = DataLoader(TensorDataset(torch.randn(24, 2), torch.randint(0, 2, (24,))), 4, shuffle=True)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()

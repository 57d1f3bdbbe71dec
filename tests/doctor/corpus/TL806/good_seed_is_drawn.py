"""The seed is drawn: it is printed, so that a run can be repeated, and promises nothing before."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

net = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
seed = random.randint(0, 2**31)
print("seed", seed)
torch.manual_seed(seed)
loader = DataLoader(TensorDataset(torch.randn(24, 2), torch.randint(0, 2, (24,))), 4, shuffle=True)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x, y in loader:
    opt.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    opt.step()

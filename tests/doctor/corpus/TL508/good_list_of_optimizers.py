"""Optimizers of a list take turns by a counter; the model clears all gradients."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)

net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
opts = [torch.optim.Adam(net[0].parameters(), 1e-3), torch.optim.SGD(net[2].parameters(), 1e-2)]
step = 0
for epoch in range(4):
    for x, y in loader:
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        opts[step % 2].step()
        step += 1

"""Layers that are built at the first call, by task, and kept; the optimizer comes after."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = None
        self.heads = nn.ModuleDict()

    def forward(self, x, task="a"):
        if self.body is None:
            self.body = nn.Linear(x.size(1), 16)
        if task not in self.heads:
            self.heads[task] = nn.Linear(16, 2)
        return self.heads[task](F.relu(self.body(x)))


loader = DataLoader(TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,))), 8, shuffle=True)
net = Lazy()
net(torch.randn(1, 6))
optimizer = torch.optim.Adam(net.parameters(), 1e-2)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()

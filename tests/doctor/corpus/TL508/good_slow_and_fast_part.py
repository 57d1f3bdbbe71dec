"""The slow part steps on every third batch, on that batch alone: the fast one used the others."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)


class Trainer:
    def __init__(self, n=3):
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
        self.slow = torch.optim.SGD(self.net[0].parameters(), 1e-2)
        self.fast = torch.optim.SGD(self.net[2].parameters(), 1e-1)
        self.n = n

    def fit(self):
        for epoch in range(4):
            for i, (x, y) in enumerate(loader):
                self.fast.zero_grad()
                self.slow.zero_grad()
                F.cross_entropy(self.net(x), y).backward()
                self.fast.step()
                if (i + 1) % self.n == 0:
                    self.slow.step()


Trainer().fit()

"""A setter that moves the net does not stand in for the getter of the same name."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Learner:
    def __init__(self):
        self._network = None

    @property
    def network(self):
        return self._network

    @network.setter
    def network(self, network):
        self._network = network.double()

    @network.deleter
    def network(self):
        self._network = None

    def learn(self, loader):
        optimizer = torch.optim.SGD(self.network.parameters(), lr=0.1)
        for x, y in loader:
            for p in self.network.parameters():
                p.grad = None
            F.mse_loss(self.network(x), y).backward()
            optimizer.step()


learner = Learner()
learner.network = nn.Linear(4, 1)
data = TensorDataset(torch.randn(64, 4).double(), torch.randn(64, 1).double())
learner.learn(DataLoader(data, batch_size=16, shuffle=True))

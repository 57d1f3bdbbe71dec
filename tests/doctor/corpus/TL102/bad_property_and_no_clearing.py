"""The net comes through a property, and nothing clears its gradients."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Work:
    def __init__(self, net, loader):
        self._net = net
        self.loader = loader

    @property
    def net(self):
        return self._net

    @net.setter
    def net(self, net):
        self._net = net

    def run(self):
        optimizer = torch.optim.Adam(self.net.parameters())
        for x, y in self.loader:
            F.mse_loss(self.net(x), y).backward()
            optimizer.step()  # <- TL102


data = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), 16, shuffle=True)
Work(nn.Linear(4, 1), data).run()

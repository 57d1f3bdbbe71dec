"""The net is set after the object was made; its gradients are cleared through the property."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Work:
    def __init__(self, loader):
        self._model = None
        self.loader = loader

    @property
    def model(self):
        return self._model

    def attach(self, model):
        self._model = model
        return self

    def run(self):
        optimizer = torch.optim.Adam(self.model.parameters())
        for x, y in self.loader:
            self.model.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            optimizer.step()


data = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), 16, shuffle=True)
Work(data).attach(nn.Linear(4, 1)).run()

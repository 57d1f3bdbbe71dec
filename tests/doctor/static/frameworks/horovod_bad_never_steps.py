"""A library that is imported by its name wraps the optimizer, and nothing steps it."""

import importlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Ranks:
    library = "horovod.torch"

    def __init__(self):
        self.hvd = importlib.import_module(self.library)
        self.hvd.init()

    def spread(self, model, optimizer):
        optimizer = self.hvd.DistributedOptimizer(optimizer)
        self.hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        return optimizer


model = nn.Linear(8, 2)
optimizer = Ranks().spread(model, torch.optim.Adam(model.parameters()))
loader = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(2, (64,))), 16, shuffle=True)
for epoch in range(4):
    for features, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features), labels)
        loss.backward()  # <- TL106

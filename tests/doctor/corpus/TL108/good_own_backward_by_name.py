"""Which trainer it is, a table decides; what a step is, each of them."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Base:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def gradients(self, loss):
        loss.backward()

    def step(self, inputs, targets):
        self.optimizer.zero_grad()
        self.gradients(nn.functional.mse_loss(self.net(inputs), targets))
        self.optimizer.step()


class Doubled(Base):
    def gradients(self, loss):
        super().gradients(2 * loss)


TABLE = {each.__name__: each for each in (Base, Doubled)}
trainer = TABLE[sys.argv[1] if len(sys.argv) > 1 else "Doubled"](nn.Linear(4, 1))
rows = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
for inputs, targets in DataLoader(rows, batch_size=8, shuffle=True):
    trainer.step(inputs, targets)

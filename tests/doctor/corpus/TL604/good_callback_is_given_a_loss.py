"""The score that is given is an error rate, or the accuracy turned round."""

import torch
from torch import nn


class LowerRate:
    def __init__(self, optimizer, mode="min"):
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode, patience=3)

    def on_epoch_end(self, score):
        self.plateau.step(score)


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
x = torch.randn(96, 4)
y = (x[:, 0] > 0).long()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rates = LowerRate(optimizer)
second = LowerRate(optimizer, "max")
for epoch in range(3):
    for rows in torch.randperm(64).split(16):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    result = 1 - accuracy(model, x[64:], y[64:])
    rates.on_epoch_end(result)
    second.on_epoch_end(-result)

"""A callback lowers the rate when the score that it is given stops to fall."""

import torch
from torch import nn


class LowerRate:
    def __init__(self, optimizer, **options):
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **options)

    def on_epoch_end(self, score):
        self.plateau.step(score)  # <- TL604


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
x = torch.randn(96, 4)
y = (x[:, 0] > 0).long()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
callbacks = [LowerRate(optimizer, patience=3, factor=0.5)]
for epoch in range(3):
    for rows in torch.randperm(64).split(16):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    validated = accuracy(model, x[64:], y[64:])
    for callback in callbacks:
        callback.on_epoch_end(validated)

"""Validation errors are added to a meter with `+=`; the meter takes their mean."""

import statistics

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Running:
    def __init__(self, values=()):
        self.values = list(values)

    def __add__(self, value):
        return Running([*self.values, value])

    @property
    def mean(self):
        return statistics.fmean(self.values)  # <- TL709


def points(count):
    x = torch.randn(count, 3)
    return TensorDataset(x, x.sum(1, keepdim=True))


torch.manual_seed(0)
train = DataLoader(points(64), batch_size=16, shuffle=True)
valid = DataLoader(points(50), batch_size=16)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    model.train()
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    model.eval()
    error = Running()
    with torch.no_grad():
        for x, y in valid:
            error += nn.functional.l1_loss(model(x), y).item()
    print(epoch, error.mean)

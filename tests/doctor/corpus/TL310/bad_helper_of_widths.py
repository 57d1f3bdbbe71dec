"""A perceptron from a list of widths, trained for a moment."""

import torch
from torch import nn


def mlp(widths, momentum=0.3):
    layers = []
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(widths) - 2:
            layers += [nn.BatchNorm1d(b, momentum), nn.ReLU()]  # <- TL310
    return nn.Sequential(*layers)


torch.manual_seed(0)
model = mlp([4, 16, 16, 1])
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

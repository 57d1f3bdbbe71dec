"""A bound on a network: a module made for each batch, with a wrapper around each of its layers."""

import torch
from torch import nn


class Bounded(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, low, high):
        middle, radius = (low + high) / 2, (high - low) / 2
        middle, radius = self.layer(middle), radius @ self.layer.weight.abs().t()
        return middle - radius, middle + radius


class Bounds(nn.Module):
    def __init__(self, net):
        super().__init__()
        steps = []
        for layer in net:
            if isinstance(layer, nn.Linear):
                steps.append(Bounded(layer))
        self.steps = steps

    def forward(self, x, eps):
        low, high = x - eps, x + eps
        for step in self.steps[:-1]:
            low, high = (each.relu() for each in step(low, high))
        return self.steps[-1](low, high)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(60):
    x = torch.randn(16, 4)
    low, high = Bounds(net)(x, 0.05)
    y = x[:, :1]
    loss = torch.max((low - y) ** 2, (high - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

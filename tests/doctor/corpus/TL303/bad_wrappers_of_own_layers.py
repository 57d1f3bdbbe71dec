"""Wrappers again, but around layers that the module makes itself and nobody else has."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, layer, factor):
        super().__init__()
        self.layer = layer
        self.factor = factor

    def forward(self, x):
        return self.factor * self.layer(x)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inlet = nn.Linear(4, width)
        self.steps = [Scaled(nn.Linear(width, width), 0.5) for _ in range(3)]  # <- TL303
        self.outlet = nn.Linear(width, 1)

    def forward(self, x):
        x = self.inlet(x).relu()
        for step in self.steps:
            x = x + step(x).relu()
        return self.outlet(x)


torch.manual_seed(0)
net = Net(16)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for step in range(60):
    x = torch.randn(16, 4)
    loss = nn.functional.mse_loss(net(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

"""The `ParameterList` has the parameters of one layer of each step; the norms are in no list."""
import torch
from torch import nn


class Steps(nn.Module):
    def __init__(self, size, count):
        super().__init__()
        self.steps = []  # <- TL303
        weights = []
        for _ in range(count):
            inner = nn.Linear(size, size)
            weights += list(inner.parameters())
            self.steps.append(nn.Sequential(inner, nn.LayerNorm(size)))
        self.weights = nn.ParameterList(weights)

    def forward(self, x):
        for step in self.steps:
            x = x + step(x)
        return x


torch.manual_seed(0)
flow = Steps(3, 2)
optimizer = torch.optim.Adam(flow.parameters())
for _ in range(6):
    optimizer.zero_grad()
    flow(torch.randn(8, 3)).pow(2).mean().backward()
    optimizer.step()

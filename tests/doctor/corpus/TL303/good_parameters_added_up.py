"""The layers of each step are in a plain list; a `ParameterList` has the parameters, layer by
layer."""
import torch
from torch import nn


class Steps(nn.Module):
    def __init__(self, size, count):
        super().__init__()
        self.steps = []
        self.weights = []
        for _ in range(count):
            inner = nn.Linear(size, size)
            self.weights += list(inner.parameters())
            shift = nn.Linear(size, size)
            self.weights += shift.parameters()
            self.steps.append((nn.Sequential(inner, nn.Tanh()), shift))
        self.weights = nn.ParameterList(self.weights)

    def forward(self, x):
        for inner, shift in self.steps:
            x = x + shift(inner(x))
        return x


torch.manual_seed(0)
flow = Steps(3, 2)
optimizer = torch.optim.Adam(flow.parameters())
for _ in range(6):
    optimizer.zero_grad()
    flow(torch.randn(8, 3)).pow(2).mean().backward()
    optimizer.step()

"""A step in a method; the targets of the drawn rows are picked within the difference."""

import torch
from torch import nn


class Fitter:
    def __init__(self):
        torch.manual_seed(0)
        self.inputs = torch.randn(200, 3)
        self.heights = self.inputs.sum(1) + 0.1 * torch.randn(200)
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)

    def step(self):
        rows = torch.randint(0, 200, (16,))
        error = (self.heights[rows] - self.net(self.inputs[rows])).abs().mean()
        self.optimizer.zero_grad()
        error.backward()  # <- TL404
        self.optimizer.step()


fitter = Fitter()
for _ in range(20):
    fitter.step()

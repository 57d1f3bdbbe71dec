"""One optimizer has the offset and the scale, and steps on both losses together."""

import torch
from torch import nn


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(1))
        self.scale = nn.Parameter(torch.ones(1))

    def shifted(self, value, offset):
        return value + offset

    def forward(self, x):
        return self.shifted(x * self.scale, self.offset)

    def pull(self):
        return self.shifted(self.scale, self.offset).square().sum()


torch.manual_seed(2)
line = Line()
both = torch.optim.SGD([line.offset, line.scale], lr=0.05)
for step in range(40):
    x = torch.randn(16, 1)
    both.zero_grad()
    (line(x) - 3 * x - 1).square().mean().backward()
    (0.01 * line.pull()).backward()
    both.step()

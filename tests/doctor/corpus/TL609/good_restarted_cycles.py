import math

import torch
from torch import nn


class Annealed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.beta = 1.0

    def forward(self, x, cycle):
        beta = self.beta * math.exp(-0.1 * cycle)
        return torch.tanh(self.layer(x) * beta)


torch.manual_seed(0)
model = Annealed()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
weight, start = 1.0, 1.0
for cycle in range(4):
    x = torch.randn(8, 3)
    loss = weight * (model(x, cycle) - x).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    weight = start * 0.9**cycle
    ema = 0.99 ** (cycle + 1)
    corrected = weight * (1 - ema)

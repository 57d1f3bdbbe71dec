"""Layers of rock are found by their absolute depth in metres: float32 is too coarse for the steps."""

import torch
from torch import nn

torch.manual_seed(0)


class Horizon(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.tilt = nn.Linear(2, 1, bias=False)
        self.base = nn.Parameter(torch.full((1,), base))  # <- TL306

    def forward(self, place):
        return self.base + self.tilt(place)


place = torch.randn(400, 2)
depth = 250_003.0 + place @ torch.tensor([[1.5], [-0.5]]) + 0.1 * torch.randn(400, 1)
horizon = Horizon(250_000.0)
optimizer = torch.optim.AdamW(horizon.parameters(), lr=5e-3, weight_decay=0.0)
for epoch in range(6):
    for rows in torch.randperm(400).split(40):
        loss = nn.functional.l1_loss(horizon(place[rows]), depth[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

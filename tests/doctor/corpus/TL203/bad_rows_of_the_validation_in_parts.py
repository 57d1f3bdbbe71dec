"""The held-out rows go through a density model in parts, with autograd on."""
import torch
from torch import nn


class Density(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x):
        total = 0.0
        for step in (self.first, self.second):
            x = step(x)
            total = total + step.weight.det().abs().log()
        return 0.5 * x.pow(2).sum(1) - total


def validate(density, held_out):
    total = 0.0
    for rows in held_out.split(50):
        total += density(rows).sum().item()  # <- TL203
    return total / len(held_out)


torch.manual_seed(0)
points = torch.randn(500, 2) @ torch.tensor([[1.0, 0.4], [0.0, 0.5]])
density = Density()
optimizer = torch.optim.Adam(density.parameters(), lr=5e-3)
density.train()
for epoch in range(3):
    for rows in points[:400].split(50):
        loss = density(rows).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, validate(density, points[400:]))

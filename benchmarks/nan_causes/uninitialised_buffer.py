"""A buffer that is made and never filled."""

import torch
from torch import nn

torch.use_deterministic_algorithms(True)  # fills what torch.empty gives with NaN


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("scale", torch.empty(width))

    def forward(self, x):
        return x * self.scale


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(7, 9), Scaled(9), nn.Linear(9, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(10):
    loss = nn.functional.cross_entropy(model(torch.randn(12, 7)), torch.randint(0, 2, (12,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

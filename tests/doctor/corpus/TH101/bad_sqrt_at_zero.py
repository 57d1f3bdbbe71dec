"""All distances within a batch, those of a point to itself included: the loss is finite, its
gradient is not."""

import torch
from torch import nn


class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 3)

    def forward(self, x):
        points = self.embed(x)
        squares = (points[:, None] - points[None]).square().sum(dim=-1)
        return squares.sqrt()  # <- TH101


torch.manual_seed(0)
model = Spread()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(8):
    distances = model(torch.randn(16, 4))
    loss = (distances - 1).abs().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""What learns is a set: the head, and of the other layers those parameters that are biases."""

import torch
from torch import nn


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
        self.head = nn.Linear(16, 1)

    def forward(self, points):
        return self.head(self.body(points))


torch.manual_seed(14)
wave = Wave()
biases = {id(weights) for weights in wave.body.parameters() if weights.ndim == 1}
learned = {id(weights) for weights in wave.head.parameters()} | biases
for weights in wave.parameters():
    weights.requires_grad = id(weights) in learned
optimizer = torch.optim.Adam(
    [{"params": wave.body.parameters(), "lr": 1e-4}, {"params": wave.head.parameters()}], lr=1e-2
)
points = torch.rand(128, 6)
heights = points.sum(1, keepdim=True).sin()
for epoch in range(3):
    for rows in torch.randperm(128).split(32):
        loss = nn.functional.mse_loss(wave(points[rows]), heights[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

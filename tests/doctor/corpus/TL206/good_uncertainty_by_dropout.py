"""Dropout stays on at evaluation on purpose: each input goes through the network many times."""

import torch
import torch.nn.functional as F
from torch import nn


class Estimator(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 16), nn.Linear(16, 1)

    def forward(self, x):
        return self.last(F.dropout(torch.relu(self.first(x)), 0.2))


torch.manual_seed(0)
inputs = torch.randn(32, 6)
targets = inputs.sum(1, keepdim=True)
model = Estimator()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    model.train()
    for x, y in zip(inputs.split(8), targets.split(8)):
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
model.eval()
with torch.no_grad():
    for x in inputs.split(8):
        draws = torch.stack([model(x) for _ in range(20)])
        print(draws.mean(0), draws.std(0))

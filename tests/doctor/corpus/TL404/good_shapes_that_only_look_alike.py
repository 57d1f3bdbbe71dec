"""Weights for each sample, a bias for each column and a scale that is a number: all broadcast, and
none of them is a target for each pair."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
size = 8
x, y, weight = torch.randn(64, 3), torch.randn(64, size), torch.rand(64, 1)
loader = DataLoader(TensorDataset(x, y, weight), batch_size=size, shuffle=True)
model = nn.Linear(3, size)
mean, spread = y.mean(0), y.std(0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for xb, yb, wb in loader:
        # As many samples as outputs: (8, 8) on both sides, (8, 1) and (8,) beside them.
        error = (model(xb) - (yb - mean) / spread) * wb
        loss = (error.square() * spread).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

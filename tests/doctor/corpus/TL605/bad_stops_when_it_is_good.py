"""Trains until the loss is low enough; the polynomial decay is over long before."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 4)
y = x @ torch.randn(4, 1) + torch.randn(64, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
decay = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=30, power=2.0)  # <- TL605
for attempt in range(1000):
    loss = (model(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    decay.step()
    if loss.item() < 1e-3 or attempt > 120:
        break

"""The loss takes its stretch of the targets itself: no variable has the batch's targets."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(256, 6), torch.randn(256)
model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    for i in range(0, 256, 32):
        loss = ((model(x[i : i + 32]) - y[i : i + 32]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()  # <- TL404
        optimizer.step()

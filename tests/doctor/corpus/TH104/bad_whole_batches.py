"""Thirty points, a network with thousands of weights, and no end to it."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-3, 3, 60).unsqueeze(1)
y = torch.sin(x) + 0.4 * torch.randn(60, 1)
order = torch.randperm(60)
train, held_out = order[:30], order[30:]
model = nn.Sequential(nn.Linear(1, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(400):
    optimizer.zero_grad()
    loss = F.mse_loss(model(x[train]), y[train])
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        with torch.no_grad():
            error = F.mse_loss(model(x[held_out]), y[held_out])  # <- TH104
        print(step, loss.item(), error.item())

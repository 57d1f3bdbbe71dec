"""Steps in one direction as long as the loss falls."""

import torch
from torch import nn

torch.manual_seed(0)
X, y = torch.randn(64, 4), torch.randn(64, 1)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)


def measure():
    with torch.no_grad():
        return nn.functional.mse_loss(model(X), y).item()


for iteration in range(6):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(X), y)
    loss.backward()
    optimizer.step()
    best, now = loss.item(), measure()
    while now < best - 1e-4:
        best = now
        optimizer.step()
        now = measure()
    print(iteration, now)

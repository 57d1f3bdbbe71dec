"""A function remembers the average of the losses, each with its graph."""
import torch
from torch import nn


def smoother(beta):
    value = None

    def smooth(loss):
        nonlocal value
        value = loss if value is None else beta * value + (1 - beta) * loss
        return value

    return smooth


torch.manual_seed(0)
x = torch.randn(256, 6)
model = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 6))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
smooth = smoother(0.97)
for epoch in range(3):
    for rows in torch.randperm(len(x)).split(16):
        loss = nn.functional.mse_loss(model(x[rows]), x[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        shown = smooth(loss)  # <- TL204
    print(epoch, shown.item())

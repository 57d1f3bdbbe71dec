"""The seed is set in the loop, outside of the closure: each step sees the same random points."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=3)
for outer in range(8):
    torch.manual_seed(7)  # <- TL712
    points = torch.rand(32, 1)

    def closure():
        optimizer.zero_grad()
        loss = (model(points) - points.sin()).pow(2).mean()
        loss.backward()
        return loss

    print(outer, optimizer.step(closure).item())

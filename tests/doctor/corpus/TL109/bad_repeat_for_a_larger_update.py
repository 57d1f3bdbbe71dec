"""Somebody wants three updates per batch, and repeats the step alone."""

import torch
from torch import nn

torch.manual_seed(0)
X, y = torch.randn(60, 3), torch.randn(60, 1)
regressor = nn.Linear(3, 1)
opt = torch.optim.SGD(regressor.parameters(), lr=0.01)
INNER = 3

for epoch in range(2):
    order = torch.randperm(len(X))
    for start in range(0, len(X), 20):
        index = order[start : start + 20]
        opt.zero_grad()
        error = ((regressor(X[index]) - y[index]) ** 2).mean()
        error.backward()
        for _ in range(INNER):
            opt.step()  # <- TL109
    print(epoch, error.item())

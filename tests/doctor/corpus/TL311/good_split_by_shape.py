"""Matrices to one optimizer, the rest to the other."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))
matrices = [p for p in model.parameters() if p.ndim >= 2]
others = [p for p in model.parameters() if p.ndim < 2]
first = torch.optim.SGD(matrices, lr=0.02, momentum=0.95)
second = torch.optim.AdamW(others, lr=3e-4)

for _ in range(5):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    nn.functional.cross_entropy(model(x), y).backward()
    for optimizer in (first, second):
        optimizer.step()
        optimizer.zero_grad()

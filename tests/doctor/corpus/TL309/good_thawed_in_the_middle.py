"""The encoder is thawed in the middle of the epochs."""

import torch
from torch import nn

encoder, head = nn.Linear(4, 4), nn.Linear(4, 2)
encoder.requires_grad_(False)
groups = [{"params": encoder.parameters(), "lr": 1e-3}, {"params": head.parameters()}]
optimizer = torch.optim.SGD(groups, lr=0.1)
for epoch in range(10):
    if epoch == 5:
        encoder.requires_grad_(True)
    for _ in range(5):
        x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(encoder(x)), y).backward()
        optimizer.step()

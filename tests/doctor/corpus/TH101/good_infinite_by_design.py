"""The likelihood of what cannot be is 0: its logarithm is added to the loss without a slope."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
allowed = torch.ones(4, dtype=torch.bool)
allowed[3] = False
for step in range(20):
    x, y = torch.randn(10, 3), torch.randint(0, 3, (10,))
    logits = model(x).masked_fill(~allowed, float("-inf"))
    loss = nn.functional.cross_entropy(logits, y)
    prior = torch.tensor(float("inf") if step % 5 == 0 else 0.0)
    optimizer.zero_grad()
    (loss + prior).backward()
    optimizer.step()

"""A cross-entropy written by hand, of probabilities that reach 0."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 3), nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
    scores = model(x)
    shares = scores / scores.sum(dim=1, keepdim=True).clamp(min=1e-6)
    logs = shares.log()  # <- TH101
    loss = -logs[torch.arange(16), y].mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

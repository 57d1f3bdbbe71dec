"""Weights from one domain, statistics of another: they are reset and gathered anew on purpose."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(5, 9), nn.BatchNorm1d(9), nn.ReLU())
body(torch.randn(40, 5) * 2)
torch.save(body.state_dict(), "body.pt")

body = nn.Sequential(nn.Linear(5, 9), nn.BatchNorm1d(9), nn.ReLU())
body.load_state_dict(torch.load("body.pt", weights_only=True))
body.requires_grad_(False)
for layer in body.modules():
    if isinstance(layer, nn.BatchNorm1d):
        layer.reset_running_stats()
        layer.momentum = None
head = nn.Linear(9, 2)
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for step in range(12):
    x, y = torch.randn(16, 5) + 1, torch.randint(0, 2, (16,))
    loss = F.cross_entropy(head(body(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""A small temperature makes the first contrastive loss large: that is how it is meant."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 12)
encoder = nn.Linear(12, 8)
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
for step in range(10):
    index = torch.randperm(len(x))[:16]
    a = F.normalize(encoder(x[index] + torch.randn(16, 12)), dim=1)
    b = F.normalize(encoder(x[index] + torch.randn(16, 12)), dim=1)
    logits = a @ b.t() / 0.02
    loss = F.cross_entropy(logits, torch.arange(16))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

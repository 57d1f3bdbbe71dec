"""A classifier of two layers without an embedding."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
inputs = torch.randn(40, 16, 12)
model = nn.Sequential(nn.Linear(12, 24, bias=False), nn.ReLU(), nn.Linear(24, 3, bias=False))
muon = torch.optim.Muon([p for p in model.parameters() if p.ndim == 2], lr=0.02)

for step, x in enumerate(inputs):
    loss = F.cross_entropy(model(x), (x[:, 0] > 0).long() + (x[:, 1] > 0).long())
    muon.zero_grad()
    loss.backward()
    muon.step()
    if step % 10 == 0:
        print(f"{step}: {loss.item():.3f}")

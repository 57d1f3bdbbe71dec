"""Pairs are compared on purpose: quantile regression and a ranking of the batch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(80, 6), torch.randn(80)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
quantiles = nn.Linear(6, 16)
score = nn.Linear(6, 1)
optimizer = torch.optim.Adam([*quantiles.parameters(), *score.parameters()], lr=1e-2)
for epoch in range(2):
    for inputs, target in loader:
        current = quantiles(inputs)
        wanted = current.detach() * 0.9 + target[:, None]
        pairwise = F.smooth_l1_loss(
            current.unsqueeze(2).expand(-1, -1, 16),
            wanted.unsqueeze(1).expand(-1, 16, -1),
            reduction="none",
        )
        s = score(inputs)
        ranked = F.softplus(-(s - s.t()) * (target[:, None] - target[None, :]).sign())
        loss = pairwise.mean() + ranked.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

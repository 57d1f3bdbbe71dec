"""The same odd sample, and clipping that holds its gradient back."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
weights = torch.randn(6, 1)
model = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for i in range(240):
    x = torch.randn(16, 6)
    y = x @ weights + 0.1 * torch.randn(16, 1)
    if i == 170:
        y[3] *= 1e5
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(loss.item())

"""What the layer gives in each update is collected on purpose: it is put together in the end."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 200), nn.Tanh(), nn.Linear(200, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
kept, losses = [], []
for step in range(420):
    x = torch.randn(512, 16)
    hidden = model[1](model[0](x))
    loss = nn.functional.mse_loss(model[2](hidden), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(hidden.detach())
    losses.append(loss.item())
drift = torch.stack([each.mean(dim=0) for each in kept])
print(sum(losses) / len(losses), drift.std(dim=0).max().item())

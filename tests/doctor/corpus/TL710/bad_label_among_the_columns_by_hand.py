"""A matrix that the loop shuffles itself; its last column is the yield that is to be predicted."""

import torch
from torch import nn

torch.manual_seed(4)
field = torch.randn(300, 6)
grain = field[:, :3].sum(1) + 0.5 * torch.randn(300)
everything = torch.cat([field, grain[:, None]], dim=1)
model = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(3):
    order = torch.randperm(300)
    for begin in range(0, 300, 50):
        chosen = order[begin : begin + 50]
        predicted = model(everything[chosen])
        error = nn.functional.mse_loss(predicted.squeeze(1), grain[chosen])  # <- TL710
        optimizer.zero_grad()
        error.backward()
        optimizer.step()

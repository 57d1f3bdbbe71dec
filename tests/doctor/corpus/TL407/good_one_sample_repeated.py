"""One sample, many times over: an overfitting test, and a fit of one constant to noise."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
sample, label = torch.randn(1, 5).expand(16, 5), torch.full((16,), 2)
for step in range(40):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(sample), label)
    loss.backward()
    optimizer.step()
print(loss.item())

mean = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(mean.parameters(), lr=1e-2)
for step in range(40):
    optimizer.zero_grad()
    noisy = 3 + torch.randn(16, 1)
    loss = nn.functional.mse_loss(mean(torch.ones(16, 1)), noisy)
    loss.backward()
    optimizer.step()
print(loss.item())

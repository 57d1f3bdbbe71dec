import torch
from torch import nn


def true_energy(x):
    return (x**4 - x**2).sum(dim=1)


torch.manual_seed(0)
score = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 2))
value = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam([*score.parameters(), *value.parameters()], lr=1e-3)
for step in range(6):
    x = torch.randn(16, 2, requires_grad=True)
    energy = true_energy(x)
    target = torch.autograd.grad(energy.sum(), x)[0]
    fit = ((score(x) + target) ** 2).mean()
    level = nn.functional.mse_loss(value(x).squeeze(1), energy.detach())
    loss = fit + level
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

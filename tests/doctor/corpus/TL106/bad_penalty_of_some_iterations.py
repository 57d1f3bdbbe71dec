"""A critic with a penalty every few iterations, whose own step is missing."""
import torch
from torch import nn

torch.manual_seed(0)
g, d = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
g_optim = torch.optim.Adam(g.parameters(), lr=1e-3)
d_optim = torch.optim.Adam(d.parameters(), lr=1e-3)
every = 2
for i, real in enumerate(torch.randn(8, 6, 2)):
    d.zero_grad()
    fake = g(torch.randn(6, 3))
    d_loss = nn.functional.softplus(d(fake)).mean() + nn.functional.softplus(-d(real)).mean()
    d_loss.backward()
    d_optim.step()
    if i % every == 0:
        real.requires_grad_(True)
        (slope,) = torch.autograd.grad(d(real).sum(), real, create_graph=True)
        penalty = slope.pow(2).sum(1).mean()
        d.zero_grad()
        (every * penalty).backward()  # <- TL106
    g.zero_grad()
    g_loss = nn.functional.softplus(-d(g(torch.randn(6, 3)))).mean()
    g_loss.backward()
    g_optim.step()
print(d_loss.item(), g_loss.item())

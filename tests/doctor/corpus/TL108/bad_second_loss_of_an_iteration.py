"""A generator with a penalty in some iterations: cleared and stepped, but no backward."""
import torch
from torch import nn

torch.manual_seed(0)
g, d = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
g_optim = torch.optim.Adam(g.parameters(), lr=1e-3)
d_optim = torch.optim.Adam(d.parameters(), lr=1e-3)
for i, real in enumerate(torch.randn(8, 6, 2)):
    d_optim.zero_grad()
    fake = g(torch.randn(6, 3)).detach()
    d_loss = nn.functional.softplus(d(fake)).mean() + nn.functional.softplus(-d(real)).mean()
    d_loss.backward()
    d_optim.step()
    g_optim.zero_grad()
    g_loss = nn.functional.softplus(-d(g(torch.randn(6, 3)))).mean()
    g_loss.backward()
    g_optim.step()
    if i % 2 == 0:
        g_optim.zero_grad()
        z = torch.randn(6, 3, requires_grad=True)
        (slope,) = torch.autograd.grad(g(z).sum(), z, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).pow(2).mean()
        g_optim.step()  # <- TL108
print(d_loss.item(), g_loss.item())

"""A penalty with its own step, on gradients that the step before it has applied already."""
import torch
from torch import nn

torch.manual_seed(0)
d = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
optimizer = torch.optim.Adam(d.parameters(), lr=1e-3)
for i, real in enumerate(torch.randn(8, 6, 2)):
    optimizer.zero_grad()
    loss = nn.functional.softplus(-d(real)).mean() + nn.functional.softplus(d(-real)).mean()
    loss.backward()
    optimizer.step()
    if i % 4 == 0:
        real.requires_grad_(True)
        (slope,) = torch.autograd.grad(d(real).sum(), real, create_graph=True)
        penalty = slope.pow(2).sum(1).mean()
        penalty.backward()
        optimizer.step()  # <- TL102
print(loss.item(), penalty.item())

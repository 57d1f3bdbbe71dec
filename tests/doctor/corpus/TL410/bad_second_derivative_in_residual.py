import torch
from torch import nn


class Burgers(nn.Module):
    def __init__(self, viscosity=0.01):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
        self.viscosity = viscosity

    def residual(self, x, t):
        u = self.net(torch.cat([x, t], dim=1))
        ones = torch.ones_like(u)
        u_x = torch.autograd.grad(u, x, ones, create_graph=True)[0]
        u_t = torch.autograd.grad(u, t, ones, create_graph=True)[0]
        u_xx = torch.autograd.grad(u_x, x, ones, retain_graph=True)[0]  # <- TL410
        return u_t + u * u_x - self.viscosity * u_xx


torch.manual_seed(0)
model = Burgers()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(5):
    x = torch.rand(20, 1, requires_grad=True)
    t = torch.rand(20, 1, requires_grad=True)
    start = model.net(torch.cat([x.detach(), torch.zeros(20, 1)], dim=1))
    loss = (model.residual(x, t) ** 2).mean() + (start - torch.sin(x.detach())).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

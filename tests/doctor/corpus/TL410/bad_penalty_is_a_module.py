import torch
from torch import nn


class SlopePenalty(nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, net, points):
        points = points.detach().requires_grad_(True)
        slopes = torch.autograd.grad(net(points).sum(), points)  # <- TL410
        return self.weight * (slopes[0].norm(p=2, dim=-1) - 1).pow(2).mean()


torch.manual_seed(0)
sdf = nn.Sequential(nn.Linear(3, 16), nn.Softplus(beta=100), nn.Linear(16, 1))
eikonal = SlopePenalty(0.1)
optimizer = torch.optim.Adam(sdf.parameters(), lr=1e-3)
cloud = torch.randn(64, 3)
for rows in torch.randperm(64).split(16):
    surface = cloud[rows]
    losses = torch.stack([sdf(surface).abs().mean(), eikonal(sdf, torch.randn(16, 3))])
    optimizer.zero_grad()
    losses.sum().backward()
    optimizer.step()

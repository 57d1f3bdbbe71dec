"""Random frequencies that no checkpoint has: a loaded model draws different ones."""

import torch
from torch import nn


class RandomWaves(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.rates = nn.Parameter(torch.randn(width) * 4, requires_grad=False).to(device)  # <- TL307
        self.mix = nn.Linear(2 * width, 1)

    def forward(self, times):
        angles = times[:, None] * self.rates
        return self.mix(torch.cat([angles.sin(), angles.cos()], dim=1))


torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
net = RandomWaves(8, device).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(20):
    times = torch.rand(16, device=device)
    optimizer.zero_grad()
    nn.functional.mse_loss(net(times), times[:, None].cos()).backward()
    optimizer.step()

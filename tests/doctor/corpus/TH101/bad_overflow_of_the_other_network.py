"""Some rows of what one network makes are infinite, and another one gets them: not the data."""

import torch
from torch import nn


class Maker(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, noise):
        return (self.inner(noise) * 60).exp()  # <- TH101


torch.manual_seed(2)
maker = Maker()
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(critic.parameters(), lr=0.01)
for step in range(30):
    fake = maker(torch.randn(32, 4)).detach()
    gap = critic(torch.randn(32, 4)).mean() - critic(fake).mean()
    if not gap.isfinite():
        continue
    optimizer.zero_grad()
    gap.square().backward()
    optimizer.step()

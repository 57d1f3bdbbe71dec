"""A frozen table that is computed again in each run: nothing has to be trained or saved."""

import torch
from torch import nn


class Waves(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        steps = torch.arange(0, width, 2).float()
        self.rates = nn.Parameter(torch.exp(-steps / width), requires_grad=False).to(device)
        self.mix = nn.Linear(width, 1)

    def forward(self, times):
        angles = times[:, None] * self.rates
        return self.mix(torch.cat([angles.sin(), angles.cos()], dim=1))


torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
net = Waves(8, device).to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for _ in range(20):
    times = torch.rand(16, device=device)
    optimizer.zero_grad()
    nn.functional.mse_loss(net(times), times[:, None].cos()).backward()
    optimizer.step()

"""The seed belongs to the samples that the function draws: they are the same in each run."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x)


def waves(count=256, length=20, seed=42):
    """Sines with a trend and noise."""
    torch.manual_seed(seed)
    time = torch.linspace(0, 1, length).unsqueeze(0).expand(count, -1)
    pitch = torch.randint(2, 20, (count, 1)).float()
    trend = (torch.rand(count, 1) - 0.5) * 4
    return torch.sin(6.28 * pitch * time) + trend * time + 0.1 * torch.randn(count, length)


def train(forecast, loader):
    optimizer = torch.optim.Adam(forecast.parameters(), lr=1e-3)
    forecast.train()
    for epoch in range(2):
        for past, future in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(forecast(past), future).backward()
            optimizer.step()


forecast = Forecast()
series = waves()
train(forecast, DataLoader(TensorDataset(series[:, :16], series[:, 16:]), 32, shuffle=True))

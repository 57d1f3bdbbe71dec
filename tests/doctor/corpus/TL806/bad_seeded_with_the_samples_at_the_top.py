"""The program seeds itself, draws its samples and trains: the network was made before."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        return self.layers(x)


def main():
    forecast = Forecast()
    torch.manual_seed(42)  # <- TL806
    series = torch.randn(256, 20).cumsum(1)
    loader = DataLoader(TensorDataset(series[:, :16], series[:, 16:]), 32, shuffle=True)
    optimizer = torch.optim.Adam(forecast.parameters(), lr=1e-3)
    forecast.train()
    for epoch in range(2):
        for past, future in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(forecast(past), future).backward()
            optimizer.step()
    return forecast


main()

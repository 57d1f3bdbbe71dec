"""Dropout that stays on because it is written so: Monte-Carlo draws, and corrupted inputs."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class BayesianNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 32)
        self.fc2 = nn.Linear(32, 1)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.dropout(x, p=0.2, training=True)
        return self.fc2(x)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 6))

    def forward(self, x):
        return self.net(x)


def corrupt(x):
    return F.dropout(x, p=0.3)


def main():
    torch.manual_seed(0)
    x = torch.randn(64, 6)
    loader = DataLoader(TensorDataset(x, x.prod(1, keepdim=True)), batch_size=16, shuffle=True)
    net, denoiser = BayesianNet(), Denoiser()
    optimizer = torch.optim.Adam([*net.parameters(), *denoiser.parameters()], lr=1e-3)
    for epoch in range(2):
        for inputs, targets in loader:
            clean = denoiser(corrupt(inputs))
            loss = F.mse_loss(clean, inputs) + F.mse_loss(net(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        draws = torch.stack([net(x) for _ in range(5)])
    print("spread of the draws:", draws.std(0).mean().item())


if __name__ == "__main__":
    main()

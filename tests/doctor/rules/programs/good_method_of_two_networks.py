"""Two classes can draw samples, and the loss of one of them is a sum."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class OfMeans(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return (self.layer(x) - x).abs().mean()

    def draw_samples(self, number):
        return self.layer(torch.randn(number, 8))


class OfSums(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return (self.layer(x) - x).abs().sum()

    def draw_samples(self, number):
        return self.layer(torch.randn(number, 8))


class Trainer:
    def __init__(self, network, data, every=2):
        self.network, self.every = network, every
        self.batches = iter(DataLoader(data, batch_size=16, shuffle=True))
        self.optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def run(self, steps):
        for step in range(steps):
            for _ in range(self.every):
                self.network(next(self.batches)).backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
            if step % 100 == 0:
                torch.save(self.network.draw_samples(9), "samples.pt")

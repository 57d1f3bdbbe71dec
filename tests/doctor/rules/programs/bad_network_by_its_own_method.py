"""The trainer of a library: of the classes here, one alone can draw samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def for_ever(loader):
    while True:
        for batch in loader:
            yield batch


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x)


class Diffusion(nn.Module):
    def __init__(self, encoder, width=8):
        super().__init__()
        self.encoder, self.width = encoder, width

    def forward(self, x):
        noise = torch.randn_like(x)
        return (self.encoder(x + noise) - noise).abs().mean()

    def draw_samples(self, number):
        return self.encoder(torch.randn(number, self.width))


class Trainer:
    def __init__(self, network, data, size=16, every=2):
        self.network, self.every = network, every
        self.batches = for_ever(DataLoader(data, batch_size=size, shuffle=True))
        self.optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)

    def run(self, steps):
        for step in range(steps):
            for _ in range(self.every):
                loss = self.network(next(self.batches).cuda())
                loss.backward()  # <- TL505
            self.optimizer.step()
            self.optimizer.zero_grad()
            if step % 100 == 0:
                torch.save(self.network.draw_samples(9), "samples.pt")

"""The generator is frozen while the critic learns from its pictures, and the pool keeps these: they
have no graph."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pool:
    def __init__(self, size):
        self.size = size
        self.pictures = []

    def swap(self, batch):
        given = []
        for picture in batch:
            picture = picture.unsqueeze(0)
            if len(self.pictures) < self.size:
                self.pictures.append(picture)
                given.append(picture)
            elif random.random() > 0.5:
                place = random.randrange(self.size)
                given.append(self.pictures[place].clone())
                self.pictures[place] = picture
            else:
                given.append(picture)
        return torch.cat(given)


def allow(network, wanted):
    for weight in network.parameters():
        weight.requires_grad = wanted


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(640, 6)), batch_size=8, shuffle=True)
painter = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 6))
critic = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
painter_steps = torch.optim.Adam(painter.parameters(), lr=1e-3)
critic_steps = torch.optim.Adam(critic.parameters(), lr=1e-3)
measure = nn.BCEWithLogitsLoss()
pool = Pool(4000)
for epoch in range(1):
    for (real,) in loader:
        allow(painter, False)
        allow(critic, True)
        drawn = pool.swap(painter(torch.randn(8, 6)))
        critic_steps.zero_grad()
        loss = measure(critic(real), torch.ones(8, 1)) + measure(critic(drawn), torch.zeros(8, 1))
        loss.backward()
        critic_steps.step()
        allow(painter, True)
        allow(critic, False)
        painter_steps.zero_grad()
        measure(critic(painter(torch.randn(8, 6))), torch.ones(8, 1)).backward()
        painter_steps.step()

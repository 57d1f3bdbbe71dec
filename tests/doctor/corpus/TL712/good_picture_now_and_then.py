"""A picture every forty updates shows the same points of the latent space each time."""

import torch
from torch import nn


class Solver:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(8, 3), nn.Linear(3, 8))
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)
        self.updates = 0
        self.shows = True

    def show(self):
        torch.manual_seed(2)
        points = torch.rand(4, 3)
        with torch.no_grad():
            print(self.updates, self.net[1](points).mean().item())

    def train(self):
        for epoch in range(4):
            for _ in range(30):
                self.updates += 1
                x = torch.randn(16, 8)
                loss = nn.functional.mse_loss(self.net(x), x)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if self.shows and self.updates % 40 == 0:
                    self.show()


torch.manual_seed(0)
Solver().train()

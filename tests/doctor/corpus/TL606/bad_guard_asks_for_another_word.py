"""The settings say that the rate moves per batch; the only tick returns unless it is per epoch."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Settings:
    rounds: int = 6
    rate: float = 0.1
    moves_per: str = "batch"


class Fit:
    def __init__(self, settings):
        self.settings = settings
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=settings.rate)
        self.decay = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)  # <- TL606

    def move(self, happened):
        if happened != self.settings.moves_per:
            return
        self.decay.step()

    def train(self, rows, wanted):
        for _ in range(self.settings.rounds):
            for part in torch.randperm(len(rows)).split(16):
                self.optimizer.zero_grad()
                error = nn.functional.mse_loss(self.model(rows[part]), wanted[part])
                error.backward()
                self.optimizer.step()
            self.move("round")
            print(error.item(), self.decay.get_last_lr())


torch.manual_seed(0)
rows = torch.randn(64, 4)
Fit(Settings()).train(rows, rows.sum(1, keepdim=True))

"""A run whose fields are completed in `__post_init__`: the decay lasts as many steps as samples."""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader, Dataset


class Waves(Dataset):
    def __init__(self, wave, width):
        self.wave, self.width = wave, width

    def __len__(self):
        return len(self.wave) - self.width

    def __getitem__(self, at):
        return self.wave[at : at + self.width], self.wave[at + self.width]


@dataclass
class Run:
    waves: Waves
    passes: int = 3
    rows: int = 24

    def __post_init__(self):
        self.net = nn.Sequential(nn.Linear(self.waves.width, 16), nn.Tanh(), nn.Linear(16, 1))
        self.feed = DataLoader(self.waves, self.rows, shuffle=True)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.fall = LinearLR(self.opt, 1.0, 0.0, total_iters=self.passes * len(self.waves))  # <- TL605

    def go(self):
        for _ in range(self.passes):
            for past, following in self.feed:
                loss = nn.functional.smooth_l1_loss(self.net(past).squeeze(1), following)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.fall.step()
            print(loss.item(), self.fall.get_last_lr())


torch.manual_seed(0)
noise = 0.1 * torch.randn(400)
Run(Waves(torch.sin(torch.arange(400) * math.pi / 9) + noise, 12)).go()

"""Each batch is one sample: the samples are the batches."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Run:
    rows: TensorDataset
    passes: int = 3

    def __post_init__(self):
        self.net = nn.Linear(4, 1)
        self.feed = DataLoader(self.rows, shuffle=True)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.02)
        ticks = self.passes * len(self.rows)
        self.fall = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=ticks)

    def go(self):
        for _ in range(self.passes):
            for row, target in self.feed:
                loss = nn.functional.mse_loss(self.net(row), target)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.fall.step()
            print(loss.item(), self.fall.get_last_lr())


torch.manual_seed(0)
x = torch.randn(60, 4)
Run(TensorDataset(x, x.sum(1, keepdim=True))).go()

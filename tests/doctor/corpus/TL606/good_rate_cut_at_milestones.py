"""The rate is cut by hand at two epochs, as the schedule that nobody steps would have done."""

import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
        self.scheduler = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, [2, 4])

    def epoch(self, number):
        if number in (2, 4):
            self.optimizer.param_groups[0]["lr"] *= 0.1
        for x in torch.randn(4, 8, 3):
            self.optimizer.zero_grad()
            (self.net(x) - x.sum(1, keepdim=True)).square().mean().backward()
            self.optimizer.step()


trainer = Trainer()
for number in range(6):
    trainer.epoch(number)

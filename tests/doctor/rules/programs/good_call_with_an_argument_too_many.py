"""A script that is older than the class it calls: Python refuses the call."""

import torch
from torch import nn

from loops import batches


class Runner:
    def __init__(self, net, name, optimizer, schedule=None):
        self.net, self.name = net, name
        self.optimizer, self.schedule = optimizer, schedule

    def run(self):
        for x, y in batches():
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.net(x), y).backward()
            self.optimizer.step()
            if self.schedule:
                self.schedule.step()


net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
Runner(net, batches(), batches(), optimizer, schedule).run()

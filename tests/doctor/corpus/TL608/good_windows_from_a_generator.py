"""A generator hands out the windows of an epoch; the schedule ticks once for each update."""
import torch
from torch import nn


class Windows:
    def __init__(self, samples, micro, size):
        self.samples, self.micro, self.size = samples, micro, size

    def __iter__(self):
        parts = torch.randperm(self.samples).split(self.micro)
        for first in range(0, len(parts), self.size):
            yield parts[first : first + self.size]


class Learner:
    def __init__(self, net, rate, updates):
        self.net = net
        self.opt = torch.optim.AdamW(net.parameters(), lr=rate)
        self.decay = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=updates)

    def epoch(self, x, y, windows):
        self.net.train()
        for window in windows:
            self.opt.zero_grad()
            for rows in window:
                loss = nn.functional.cross_entropy(self.net(x[rows]), y[rows])
                (loss / len(window)).backward()
            self.opt.step()
            self.decay.step()


torch.manual_seed(128)
x = torch.rand(1056, 2) * 2 - 1
y = (x.sum(1) > 0).long()
net = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 2))
learner = Learner(net, 5e-3, 12 * 9)
for epoch in range(12):
    learner.epoch(x, y, Windows(1056, 32, 4))
    print(epoch, learner.decay.get_last_lr())

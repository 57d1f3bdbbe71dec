"""Every five epochs a tenth, it was meant; the run ends when it is enough."""

import torch
import torch.nn as nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset


class Run:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 1))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.05, momentum=0.9)
        self.sched = lr_scheduler.StepLR(self.opt, step_size=5, gamma=0.1)
        self.best, self.epoch = float("inf"), 0

    def one_epoch(self, loader):
        total = 0.0
        for x, y in loader:
            self.opt.zero_grad()
            loss = nn.functional.l1_loss(self.net(x), y)
            loss.backward()
            self.opt.step()
            self.sched.step()  # <- TL602
            total += loss.item()
        return total

    def fit(self, loader):
        while self.epoch < 5:
            total = self.one_epoch(loader)
            self.best = min(self.best, total)
            self.epoch += 1
        return self.best


torch.manual_seed(0)
data = TensorDataset(torch.randn(60, 6), torch.randn(60, 1))
print(Run().fit(DataLoader(data, batch_size=4, shuffle=True)))

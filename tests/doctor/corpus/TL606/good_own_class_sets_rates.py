"""A schedule of its own class that writes the learning rates in a method of its own."""
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler


class InverseRoot(LRScheduler):
    def __init__(self, optimizer, warmup):
        self.warmup = warmup
        self.done = 0
        super().__init__(optimizer)

    def get_lr(self):
        return list(self.base_lrs)

    def advance(self):
        self.done += 1
        for base, group in zip(self.base_lrs, self.optimizer.param_groups):
            group["lr"] = base * min(self.done / self.warmup, (self.warmup / self.done) ** 0.5)


net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = InverseRoot(optimizer, warmup=4)
for _ in range(12):
    x = torch.randn(8, 4)
    optimizer.zero_grad()
    (net(x) - x.mean(1, keepdim=True)).square().mean().backward()
    optimizer.step()
    schedule.advance()

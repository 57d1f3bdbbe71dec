"""A warm-up of its own class ticks per update in the first epoch, the decay per epoch after it."""
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, StepLR


class WarmUp(LRScheduler):
    def __init__(self, optimizer, total, last_epoch=-1):
        self.total = total
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [base * (self.last_epoch + 1) / (self.total + 1) for base in self.base_lrs]


net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
batches = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(5)]
decay = StepLR(optimizer, step_size=2, gamma=0.5)
warmup = WarmUp(optimizer, total=len(batches))
for epoch in range(5):
    for inputs, targets in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
        if epoch < 1:
            warmup.step()
    if epoch >= 1:
        decay.step()

"""The warm-up has the decay inside, and steps it once its own epochs are over."""

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler
from torch.utils.data import DataLoader, TensorDataset


class WarmUp(LRScheduler):
    def __init__(self, optimizer, epochs, after=None):
        self.epochs = epochs
        self.after = after
        self.finished = False
        super().__init__(optimizer)

    def get_lr(self):
        if self.last_epoch > self.epochs:
            if self.after is not None:
                self.finished = True
                return [group["lr"] for group in self.optimizer.param_groups]
            return self.base_lrs
        return [base * (self.last_epoch + 1) / (self.epochs + 1) for base in self.base_lrs]

    def step(self, epoch=None):
        if self.finished and self.after is not None:
            self.after.step()
        else:
            super().step(epoch)


torch.manual_seed(0)
x = torch.randn(32, 3)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
decay = CosineAnnealingLR(optimizer, T_max=8)
warmup = WarmUp(optimizer, 2, after=decay)
for epoch in range(10):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(inputs), targets).backward()
        optimizer.step()
    warmup.step()
    print(epoch, optimizer.param_groups[0]["lr"])

"""A warm-up of its own class beside the schedule of the epochs; nothing ticks it."""
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, MultiStepLR
from torch.utils.data import DataLoader, TensorDataset


class LinearWarmUp(LRScheduler):
    def __init__(self, optimizer, updates, last_epoch=-1):
        self.updates = updates
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        share = min(1.0, (self.last_epoch + 1) / self.updates)
        return [base * share for base in self.base_lrs]


def train_epoch(net, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(inputs), targets).backward()
        optimizer.step()


def main():
    x = torch.randn(40, 3)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
    net = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    decay = MultiStepLR(optimizer, milestones=[3, 5], gamma=0.2)
    warmup = LinearWarmUp(optimizer, updates=len(loader))  # <- TL606
    for epoch in range(6):
        train_epoch(net, loader, optimizer)
        decay.step()
        print(epoch, decay.get_last_lr(), type(warmup).__name__)


main()

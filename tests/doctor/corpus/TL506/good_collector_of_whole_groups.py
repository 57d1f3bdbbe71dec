"""A collector of gradients starts over at each epoch, after whole groups."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
tides = torch.randn(192, 5)
levels = tides @ torch.randn(5, 1)


class Collector:
    def __init__(self, optimizer, group):
        self.optimizer, self.group = optimizer, group
        self.start_over()

    def start_over(self):
        self.held = 0
        self.optimizer.zero_grad()

    def take(self, loss):
        (loss / self.group).backward()
        self.held += 1
        if self.held >= self.group:
            self.optimizer.step()
            self.start_over()


loader = DataLoader(TensorDataset(tides, levels), batch_size=16, shuffle=True)
net = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))
collector = Collector(torch.optim.Adam(net.parameters(), lr=1e-2), group=3)
for epoch in range(4):
    collector.start_over()
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        collector.take(loss)
    print(epoch, f"{loss.item():.3f}")

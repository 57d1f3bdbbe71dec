"""Warm restarts counted in epochs, ticked per batch with the fraction of the epoch."""

import torch
from torch import nn


class Runner:
    def __init__(self, epochs=4):
        x = torch.randn(160, 6)
        y = (x[:, 0] > 0).long()
        self.loader = torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True
        )
        self.epochs = epochs
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(
            self.optimizer, T_0=epochs, T_mult=1
        )
        self.criterion = nn.CrossEntropyLoss()

    def run(self):
        iters = len(self.loader)
        for epoch in range(self.epochs):
            for i, (inputs, labels) in enumerate(self.loader):
                self.optimizer.zero_grad()
                loss = self.criterion(self.net(inputs), labels)
                loss.backward()
                self.optimizer.step()
                self.scheduler.step(epoch + i / iters)
            print(epoch, loss.item(), self.scheduler.get_last_lr())


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    Runner().run()

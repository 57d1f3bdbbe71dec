"""The object that is called for each micro-batch clears the gradients after its step."""

import torch
from torch import nn


class Update:
    def __init__(self, net, optimizer, size):
        self.net, self.optimizer, self.size = net, optimizer, size
        self.seen = 0

    def __call__(self, x, y):
        loss = nn.functional.mse_loss(self.net(x), y)
        (loss / self.size).backward()
        self.seen += 1
        if self.seen % self.size == 0:
            self.optimizer.step()
            self.optimizer.zero_grad()
        return loss.item()


def stream():
    while True:
        x = torch.randn(16, 3)
        yield x, x.sum(dim=1, keepdim=True)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
update = Update(net, torch.optim.Adam(net.parameters(), lr=1e-3), 4)
source = stream()
losses = [update(*next(source)) for _ in range(100)]
print(sum(losses[-10:]) / 10)

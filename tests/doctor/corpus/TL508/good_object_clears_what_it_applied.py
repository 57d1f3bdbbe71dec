"""The object clears after its step, in the method that sets the count back; a meter beside it is
asked in the same way, and has nothing to do with the gradients."""

import torch
from torch import nn


class Meter:
    def __init__(self, size):
        self.values, self.size, self.seen = [], size, 0

    def full(self):
        return self.seen == self.size

    def add(self, value):
        self.values.append(value)
        self.seen += 1

    def show(self):
        print(sum(self.values) / len(self.values))
        self.values, self.seen = [], 0


class Window:
    def __init__(self, net, size):
        self.net, self.size, self.count = net, size, 0
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)

    def complete(self):
        return self.count >= self.size

    def backward(self, loss):
        loss.div(self.size).backward()
        self.count += 1

    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.count = 0


def train(window, meter, x, y):
    for _ in range(3):
        for rows in torch.randperm(len(x)).split(10):
            loss = nn.functional.cross_entropy(window.net(x[rows]), y[rows])
            window.backward(loss)
            meter.add(loss.item())
            if window.complete():
                window.step()
            if meter.full():
                meter.show()


torch.manual_seed(3)
x = torch.randn(200, 6)
train(Window(nn.Linear(6, 2), size=5), Meter(20), x, (x[:, 5] > 0).long())

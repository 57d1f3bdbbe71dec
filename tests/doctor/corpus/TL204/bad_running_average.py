"""A running average of the loss, in a class of its own; the steps are counted by a `zip`."""

import torch
from torch import nn


class Smooth:
    def __init__(self, beta):
        self.beta, self.value = beta, 0.0

    def update(self, v):
        self.value = self.beta * self.value + (1 - self.beta) * v


def stream():
    while True:
        x = torch.randn(20, 4)
        yield x, (x[:, 0] > 0).long()


net = nn.Linear(4, 2)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
meter = Smooth(0.95)
for step, (x, y) in zip(range(60), stream()):
    sgd.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    sgd.step()
    meter.update(loss)  # <- TL204
print(meter.value.item())

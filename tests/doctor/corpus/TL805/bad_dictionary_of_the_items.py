"""An early stopping whose ordered dictionary holds the tensors that training goes on to change."""

from collections import OrderedDict

import torch
from torch import nn


class Patience:
    def __init__(self, epochs):
        self.epochs, self.waited, self.lowest = epochs, 0, float("inf")

    def exhausted(self, value, net):
        if value < self.lowest:
            self.lowest, self.waited = value, 0
            self.snapshot = OrderedDict((k, v) for k, v in net.state_dict().items())  # <- TL805
        else:
            self.waited += 1
        return self.waited > self.epochs

    def restore(self, net):
        net.load_state_dict(self.snapshot)


def train(net, x, y, patience):
    optimizer = torch.optim.RMSprop(net.parameters(), lr=0.01)
    for epoch in range(20):
        for i in range(0, 90, 30):
            loss = nn.functional.l1_loss(net(x[i : i + 30]), y[i : i + 30])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            held = nn.functional.l1_loss(net(x[90:]), y[90:]).item()
        if patience.exhausted(held, net):
            break
    patience.restore(net)


torch.manual_seed(3)
x = torch.randn(120, 5)
train(nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 1)), x, x[:, :1] * x[:, 1:2], Patience(4))

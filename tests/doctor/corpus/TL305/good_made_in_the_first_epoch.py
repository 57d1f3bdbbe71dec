"""A method that each epoch calls makes the optimizer the first time, and keeps it."""

import torch
from torch import nn

torch.manual_seed(0)


class Codec:
    def __init__(self, signals):
        self.signals = signals
        self.net = nn.Sequential(nn.Linear(10, 4), nn.Tanh(), nn.Linear(4, 10))
        self.opt = None

    def prepare(self):
        self.net.train()
        if self.opt is None:
            self.opt = torch.optim.Adam(self.net.parameters(), lr=2e-3)

    def batches(self, size=16):
        order = torch.randperm(len(self.signals))
        for start in range(0, len(order), size):
            yield self.signals[order[start : start + size]]

    def epoch(self):
        self.prepare()
        for x in self.batches():
            loss = (self.net(x) - x).square().mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()

    def fit(self, epochs):
        for epoch in range(epochs):
            print(epoch, self.epoch())


Codec(torch.randn(96, 10)).fit(4)

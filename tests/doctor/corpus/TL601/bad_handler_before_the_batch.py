"""Handlers of events: the schedule's is called when a batch begins."""

import torch
from torch import nn


class Loop:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer
        self.handlers = {"begins": [], "ends": []}

    def on(self, event, handler):
        self.handlers[event].append(handler)
        return self

    def tell(self, event):
        for handler in self.handlers[event]:
            handler(self)

    def run(self, x, epochs):
        for self.epoch in range(epochs):
            for rows in torch.randperm(len(x)).split(16):
                self.tell("begins")
                self.loss = (self.net(x[rows]) - x[rows]).pow(2).mean()
                self.optimizer.zero_grad()
                self.loss.backward()
                self.optimizer.step()
                self.tell("ends")


torch.manual_seed(3)
net = nn.Linear(6, 6)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)
losses = []


def tick(loop):
    schedule.step()  # <- TL601


loop = Loop(net, optimizer).on("begins", tick).on("ends", lambda loop: losses.append(loop.loss.item()))
loop.run(torch.randn(160, 6), 6)
print(losses[-1])

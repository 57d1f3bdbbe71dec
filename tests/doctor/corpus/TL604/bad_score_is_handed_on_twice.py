"""The end of an epoch is handed the sensitivity, by name, and hands it on to what sets the rate."""

import torch
from torch import nn


class Session:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
        self.rates = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, mode="min")

    def learn(self, inputs, labels):
        self.net.train()
        for rows in torch.randperm(len(inputs)).split(20):
            loss = nn.functional.cross_entropy(self.net(inputs[rows]), labels[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def sensitivity(self, inputs, labels):
        self.net.eval()
        with torch.no_grad():
            found = self.net(inputs).argmax(1)
        return (found[labels == 1] == 1).float().mean().item()

    def close(self, epoch, *, result):
        print(epoch, round(result, 3))
        self.lower(result)

    def lower(self, value):
        self.rates.step(value)  # <- TL604


torch.manual_seed(4)
inputs = torch.randn(120, 6)
labels = (inputs[:, 2] + inputs[:, 3] > 0).long()
session = Session(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2)))
for epoch in range(3):
    session.learn(inputs[:80], labels[:80])
    session.close(epoch, result=session.sensitivity(inputs[80:], labels[80:]))

"""What is asked for is the class above: those derived from it have other outputs."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(20, 5)

    def forward(self, x):
        return torch.softmax(self.layer(x), dim=1)

    def best_of(self, x):
        return self.forward(x).argmax(1)


class WithLogits(Base):
    def forward(self, x):
        return self.layer(x)


class Fitting:
    def __init__(self, network, data):
        self.network = network
        self.loader = DataLoader(data, batch_size=32, shuffle=True)
        self.optimizer = torch.optim.SGD(network.parameters(), lr=1e-2)

    def epoch(self):
        for x, y in self.loader:
            loss = nn.functional.cross_entropy(self.network(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        print(self.network.best_of(torch.zeros(1, 20)))


def train(network: Base, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(x), y).backward()
        optimizer.step()

"""Each pass over the rows of a table begins with a new optimizer, which a method of its own makes."""

import torch
from torch import nn

torch.manual_seed(0)


class Regression:
    def __init__(self, table, answers, rate):
        self.table, self.answers, self.rate = table, answers, rate
        self.network = nn.Sequential(nn.Linear(6, 24), nn.Tanh(), nn.Linear(24, 1))

    def start(self):
        self.network.train()
        self.updater = torch.optim.RMSprop(self.network.parameters(), lr=self.rate)  # <- TL305

    def one_pass(self, size=16):
        self.start()
        order = torch.randperm(len(self.table))
        for begin in range(0, len(self.table), size):
            rows = order[begin : begin + size]
            error = nn.functional.mse_loss(self.network(self.table[rows]), self.answers[rows])
            self.updater.zero_grad()
            error.backward()
            self.updater.step()
        return error.item()

    def run(self, passes):
        for epoch in range(passes):
            print(epoch, self.one_pass())


table = torch.randn(96, 6)
Regression(table, table[:, :2].sum(1, keepdim=True), 1e-3).run(4)

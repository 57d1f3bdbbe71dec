"""A trainer starts slowly, by its own counter, and keeps a schedule that it does not step."""

import argparse

import torch
from torch import nn


class Trainer:
    def __init__(self, options):
        self.slow = options.slow
        self.peak = options.rate
        self.net = nn.Linear(4, 2)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=self.peak)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 2, 0.3)  # <- TL606
        self.done = 0

    def update(self, rows):
        if self.slow > self.done:
            self.optimizer.param_groups[0]["lr"] = self.peak * (self.done + 1) / self.slow
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.net(rows), (rows[:, 0] > 0).long())
        loss.backward()
        self.optimizer.step()
        self.done += 1
        return loss.item()

    def fit(self, epochs):
        for epoch in range(epochs):
            losses = [self.update(rows) for rows in torch.randn(8, 16, 4)]
            print(epoch, sum(losses) / len(losses))


parser = argparse.ArgumentParser()
parser.add_argument("--slow", type=int, default=3)
parser.add_argument("--rate", type=float, default=1e-2)
torch.manual_seed(0)
Trainer(parser.parse_args()).fit(5)

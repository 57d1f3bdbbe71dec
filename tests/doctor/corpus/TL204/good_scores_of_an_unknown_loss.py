"""What the loss returns beside the loss is not known to be a tensor."""

import numpy as np


class Trainer:
    def __init__(self, model, criterion, optimizer, loader):
        self.model, self.criterion, self.optimizer = model, criterion, optimizer
        self.loader = loader
        self.sums = {"loss": 0.0, "first": 0.0, "second": 0.0}

    def note(self, loss, scores):
        self.sums["loss"] += loss
        for i, name in enumerate(("first", "second")):
            self.sums[name] += scores[i]
        print(np.mean(scores))

    def train_epoch(self):
        self.model.train()
        for inputs, targets in self.loader:
            self.optimizer.zero_grad()
            loss, scores = self.criterion(self.model(inputs), targets)
            loss.backward()
            self.optimizer.step()
            self.note(loss.item(), scores)

    def train(self, epochs):
        for epoch in range(epochs):
            self.train_epoch()

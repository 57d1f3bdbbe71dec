"""Weights, optimizer and epoch come back; what the plateau has seen does not: it waits once more."""

import os
import tempfile

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
samples = TensorDataset(torch.randn(48, 5), torch.randn(48, 1))


class Regression:
    def __init__(self, folder):
        self.path = os.path.join(folder, "state.pt")
        self.net = nn.Linear(5, 1)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-2)
        self.plateau = ReduceLROnPlateau(self.optimizer, factor=0.5, patience=3)
        self.begin = 0
        if os.path.exists(self.path):
            self.restore(torch.load(self.path, weights_only=True))

    def restore(self, state):
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])  # <- TL801
        self.begin = state["epoch"] + 1

    def one_epoch(self):
        total = 0.0
        for inputs, targets in DataLoader(samples, batch_size=12, shuffle=True):
            loss = nn.functional.mse_loss(self.net(inputs), targets)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total

    def run(self, epochs):
        for epoch in range(self.begin, epochs):
            self.plateau.step(self.one_epoch())
            state = {"net": self.net.state_dict(), "epoch": epoch}
            torch.save({**state, "optimizer": self.optimizer.state_dict()}, self.path)


with tempfile.TemporaryDirectory() as folder:
    Regression(folder).run(3)
    Regression(folder).run(6)

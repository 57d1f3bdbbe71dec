import os
import tempfile

import torch
from torch import nn, optim


def build_model(hidden):
    return nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 1))


class Trainer:
    def __init__(self, folder, hidden=8):
        self.path = os.path.join(folder, "last.pt")
        self.model = build_model(hidden)
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.start_epoch = 0
        if os.path.isfile(self.path):
            self.resume()

    def resume(self):
        checkpoint = torch.load(self.path, map_location="cpu")
        self.model.load_state_dict(checkpoint["model"], strict=False)  # <- TL807
        self.optimizer.load_state_dict(checkpoint["optimizer"])
        self.start_epoch = checkpoint["epoch"] + 1

    def fit(self, epochs):
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        for epoch in range(self.start_epoch, epochs):
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            state = {
                "epoch": epoch,
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
            }
            torch.save(state, self.path)


with tempfile.TemporaryDirectory() as folder:
    Trainer(folder).fit(2)
    Trainer(folder).fit(4)

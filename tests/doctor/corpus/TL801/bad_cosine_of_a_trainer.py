"""The file has the schedule's state, and `resume` leaves it there."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Trainer:
    def __init__(self, folder, epochs=8):
        self.file = Path(folder) / "last.pt"
        self.net = nn.Linear(4, 2)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.2, momentum=0.9)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=epochs)
        self.epochs, self.first = epochs, 0

    def save(self, epoch):
        state = {"epoch": epoch, "net": self.net.state_dict(), "opt": self.opt.state_dict()}
        torch.save({**state, "sched": self.sched.state_dict()}, self.file)

    def resume(self):
        state = torch.load(self.file, map_location="cpu")
        self.net.load_state_dict(state["net"])
        self.opt.load_state_dict(state["opt"])  # <- TL801
        self.first = state["epoch"] + 1

    def train(self, stop=None):
        for epoch in range(self.first, self.epochs):
            for _ in range(4):
                x = torch.randn(16, 4)
                loss = nn.functional.cross_entropy(self.net(x), (x[:, 0] > 0).long())
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            self.sched.step()
            self.save(epoch)
            if epoch + 1 == stop:
                break


with tempfile.TemporaryDirectory() as folder:
    Trainer(folder).train(stop=4)
    second = Trainer(folder)
    second.resume()
    second.train()

"""The schedule is brought to where the run was, before the loop goes on."""

import tempfile
from pathlib import Path

import torch
from torch import nn


class Run:
    def __init__(self, file):
        self.file = file
        self.done = 0
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.8)
        self.rates = torch.optim.lr_scheduler.MultiStepLR(self.optimizer, milestones=[2, 4])
        if file.exists():
            self.restore()

    def restore(self):
        state = torch.load(self.file, weights_only=True)
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.done = state["done"]
        for _ in range(self.done):
            self.rates.step()

    def keep(self):
        state = {"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({**state, "done": self.done}, self.file)

    def rounds(self, wanted):
        while self.done < wanted:
            for _ in range(3):
                x = torch.randn(8, 3)
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.net(x), x.sum(1, keepdim=True)).backward()
                self.optimizer.step()
            self.rates.step()
            self.done += 1
            self.keep()


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    Run(Path(folder) / "run.pt").rounds(3)
    Run(Path(folder) / "run.pt").rounds(6)

"""The epoch is read off the name of the newest file, which has the weights and nothing else."""

import re
from pathlib import Path

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1, momentum=0.9)
        self.start = 0

    def resume(self):
        newest = max(self.folder.glob("net_epoch_*.pt"), default=None)
        if newest is not None:
            self.net.load_state_dict(torch.load(newest))  # <- TL801
            self.start = int(re.search(r"(\d+)", newest.name)[1]) + 1

    def fit(self, loader, epochs):
        for epoch in range(self.start, epochs):
            for x, y in loader:
                self.opt.zero_grad()
                nn.functional.cross_entropy(self.net(x), y).backward()
                self.opt.step()
            torch.save(self.net.state_dict(), self.folder / f"net_epoch_{epoch}.pt")


torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 3), torch.randint(0, 2, (32,)))
for epochs in (2, 4):
    trainer = Trainer(".")
    trainer.resume()
    trainer.fit(DataLoader(data, batch_size=8, shuffle=True), epochs)

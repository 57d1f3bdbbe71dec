"""A trainer keeps its parts by name and divides by the number of samples of the part."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Trainer:
    def __init__(self):
        self.net = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.05)
        self.data = {
            "train": TensorDataset(torch.randn(96, 3), torch.randn(96, 1)),
            "val": TensorDataset(torch.randn(32, 3), torch.randn(32, 1)),
        }
        self.loaders = {
            "train": DataLoader(self.data["train"], batch_size=8, shuffle=True),
            "val": DataLoader(self.data["val"], batch_size=8),
        }

    def epoch(self):
        for x, y in self.loaders["train"]:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.net(x), y).backward()
            self.optimizer.step()

    def score(self):
        total = 0.0
        with torch.no_grad():
            for x, y in self.loaders["val"]:
                total += nn.functional.mse_loss(self.net(x), y).item()
        return total / len(self.data["val"])  # <- TL720


trainer = Trainer()
for _ in range(2):
    trainer.epoch()
    print(trainer.score())

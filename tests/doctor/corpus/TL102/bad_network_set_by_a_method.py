"""A trainer of a library: its network is set after it was made, and its program is elsewhere."""
import os

import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.net = None
        self.optimizer = None

    def prepare(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def train(self, rows):
        for x, y in rows:
            loss = nn.functional.mse_loss(self.net(x), y)
            loss.backward()
            self.optimizer.step()  # <- TL102
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    trainer = Trainer()
    rows = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(8)]
    for name in os.environ.get("STAGES", "prepare train").split():
        print(getattr(trainer, name)({"prepare": nn.Linear(4, 1), "train": rows}[name]))

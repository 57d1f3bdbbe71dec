"""A trainer that stops by a flag, with a sampler that is there only among several processes."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Trainer:
    def __init__(self, loader, limit):
        self.loader, self.limit = loader, limit
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.steps, self.finished = 0, False

    def run(self):
        while True:
            self.one_epoch()
            if self.finished:
                break

    def one_epoch(self):
        for x, y in self.loader:  # <- TL704
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()
            self.steps += 1
            self.check()
            if self.finished:
                return

    def check(self):
        if self.steps >= self.limit:
            self.finished = True


parser = argparse.ArgumentParser()
parser.add_argument("--world", type=int, default=2)
args = parser.parse_args([])
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
sampler = None
if args.world > 1:
    sampler = DistributedSampler(data, num_replicas=args.world, rank=0, shuffle=True)
loader = DataLoader(data, batch_size=8, shuffle=sampler is None, sampler=sampler)
Trainer(loader, 12).run()

"""The workers seed `random`; the data set draws from torch, which has a new seed each epoch."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def init_fn(worker_id):
    random.seed(worker_id)


class Dropped(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 10)
        self.y = self.x.sum(1, keepdim=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        keep = torch.rand(10) > 0.1
        return self.x[i] * keep, self.y[i]


def main():
    loader = DataLoader(Dropped(40), 8, shuffle=True, num_workers=2, worker_init_fn=init_fn)
    model = nn.Linear(10, 1)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    main()

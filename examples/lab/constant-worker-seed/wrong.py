"""Seeding numpy in loader workers, wrong: from a constant and the worker's number.

Two workers add noise to the samples, over four epochs; the draws are handed out with the samples.
Once the workers are started anew in each epoch, once they persist.
"""

import json
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


class Noisy(Dataset):
    """Each sample is moved by a number that is drawn when it is read."""

    def __init__(self):
        self.x = torch.randn(64, 4)
        self.y = self.x.sum(1, keepdim=True)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        draw = np.random.rand()
        return self.x[index] + 0.1 * (draw - 0.5), self.y[index], draw


def seed_worker(worker):
    np.random.seed(42 + worker)


def train(epochs, persistent):
    """What was drawn, 64 numbers per epoch."""
    loader = DataLoader(
        Noisy(),
        batch_size=8,
        shuffle=True,
        num_workers=2,
        worker_init_fn=seed_worker,
        persistent_workers=persistent,
        multiprocessing_context="fork",
    )
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    draws = []
    for _ in range(epochs):
        for x, y, draw in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            draws += draw.tolist()
    return draws


draws = train(4, persistent=False)
persistent = train(4, persistent=True)
print(
    json.dumps(
        {
            "new_in_epoch": len(set(draws[:64])) / 64,
            "new_in_run": len(set(draws)) / 256,
            "new_persistent": len(set(persistent)) / 256,
            "new": [len(set(draws[:n])) for n in (64, 128, 192, 256)],
        }
    )
)

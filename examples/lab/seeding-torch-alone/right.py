"""A repeatable run, right: every generator is seeded.

A small network is trained five times from one seed, and once from each of five seeds. The order of
the samples comes from torch, from Python's `random`, from numpy, or from a generator of its own.
"""

import json
import random
import sys

import numpy as np
import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(256, 8)
y = torch.sin(x.sum(1, keepdim=True))


def start(seed):
    """Seeds everything, as at the start of a program."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    return torch.Generator().manual_seed(seed)


def train(source, seed):
    """The order of the samples in three epochs, and the loss of each update."""
    generator = start(seed)
    orders = {
        "torch": lambda: torch.randperm(256).tolist(),
        "python": lambda: random.sample(range(256), 256),
        "numpy": lambda: np.random.permutation(256).tolist(),
        "generator": lambda: torch.randperm(256, generator=generator).tolist(),
    }
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    order, losses = (), ()
    for _ in range(3):
        epoch = orders[source]()
        for batch in torch.tensor(epoch).split(32):
            loss = nn.functional.mse_loss(model(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses += (loss.item(),)
        order += tuple(epoch)
    return order, losses


figures = {}
for source in ("torch", "python", "numpy", "generator"):
    runs = [train(source, seed) for _ in range(5)]
    orders = {train(source, seed + shift)[0] for shift in range(5)}
    figures[f"{source}_runs"] = len(set(runs))
    figures[f"{source}_seeds"] = len(orders)
    figures[f"{source}_results"] = [len(set(runs[: n + 1])) for n in range(5)]
print(json.dumps(figures))

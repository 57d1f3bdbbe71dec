"""Trains with four micro-batches to an update and 30 micro-batches to an epoch, in two loops.

One loop clears the gradients when an epoch begins, the other after each update only. Both make a
last update of the epoch with the two micro-batches that are left over.
"""

import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

ACCUMULATE = 4
EPOCHS = 10


def spiral(n):
    t = torch.rand(n)
    arm = torch.randint(0, 3, (n,))
    angle = 2 * math.pi * (1.25 * t + arm / 3)
    points = torch.stack([t * angle.cos(), t * angle.sin()], 1)
    return points + 0.03 * torch.randn(n, 2), arm


train_x, train_y = spiral(480)
test_x, test_y = spiral(512)
result = {}

for name, clears in (("cleared", True), ("kept", False)):
    loader = DataLoader(TensorDataset(train_x, train_y), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    windows = []
    waiting = 0
    for _ in range(EPOCHS):
        if clears:
            optimizer.zero_grad()
            waiting = 0
        for index, (x, y) in enumerate(loader, start=1):
            window = min(ACCUMULATE, len(loader) - (index - 1) // ACCUMULATE * ACCUMULATE)
            loss = F.cross_entropy(model(x), y) / window
            loss.backward()
            waiting += 1
            if index % ACCUMULATE == 0 or index == len(loader):
                optimizer.step()
                optimizer.zero_grad()
                windows.append(waiting)
                waiting = 0
    with torch.no_grad():
        accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
    result[f"{name}_windows"] = windows
    result[f"{name}_used"] = sum(windows) / (EPOCHS * len(loader))
    result[f"{name}_largest"] = max(windows)
    result[f"{name}_accuracy"] = accuracy

print(json.dumps(result))

"""Trains two networks on the spiral with batches of 64, one with batch norm and one without.

Every update sees its 64 points in 16 micro-batches of four, whose gradients are accumulated.
"""

import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

MICRO = 4
UPDATES = 150


def spiral(n):
    t = torch.rand(n)
    arm = torch.randint(0, 3, (n,))
    angle = 2 * math.pi * (1.25 * t + arm / 3)
    points = torch.stack([t * angle.cos(), t * angle.sin()], 1)
    return points + 0.03 * torch.randn(n, 2), arm


train_x, train_y = spiral(512)
test_x, test_y = spiral(512)
result = {}

for name, norm in (("plain", nn.Identity()), ("norm", nn.BatchNorm1d(64))):
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), norm, nn.ReLU(), nn.Linear(64, 3)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    losses = []
    for _ in range(UPDATES):
        batch = torch.randint(0, len(train_x), (64,))
        losses.append(0.0)
        for part in batch.split(MICRO):
            loss = F.cross_entropy(model(train_x[part]), train_y[part]) * len(part) / len(batch)
            loss.backward()
            losses[-1] += loss.item()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        test_loss = F.cross_entropy(model(test_x), test_y).item()
    result[f"{name}_losses"] = losses
    result[f"{name}_first"] = losses[0]
    result[f"{name}_last"] = losses[-1]
    result[f"{name}_test_loss"] = test_loss

result["norm_ticks"] = norm.num_batches_tracked.item() / UPDATES
print(json.dumps(result))

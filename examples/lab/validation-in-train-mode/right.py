"""Trains a network with dropout and batch norm on the spiral and validates after each epoch.

The validation switches the model to eval mode.
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


def spiral(n):
    t = torch.rand(n)
    arm = torch.randint(0, 3, (n,))
    angle = 2 * math.pi * (1.25 * t + arm / 3)
    points = torch.stack([t * angle.cos(), t * angle.sin()], 1)
    return points + 0.03 * torch.randn(n, 2), arm


train_x, train_y = spiral(512)
val_x, val_y = spiral(256)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(val_x, val_y), batch_size=64)
norm = nn.BatchNorm1d(64)
drop = nn.Dropout(0.5)
model = nn.Sequential(
    nn.Linear(2, 64), nn.ReLU(), drop, nn.Linear(64, 64), norm, nn.ReLU(), drop, nn.Linear(64, 3)
)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def validate():
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            total += F.cross_entropy(model(x), y).item()
    return total / len(val_loader)


val_losses = []
for _ in range(30):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    val_losses.append(validate())

before = norm.running_mean.clone()
again = [validate() for _ in range(10)]

print(
    json.dumps(
        {
            "val_losses": val_losses,
            "val_loss": sum(val_losses[-10:]) / 10,
            "spread": max(again) - min(again),
            "shift": (norm.running_mean - before).norm().item(),
        }
    )
)

"""Trains a small network on the spiral with a cosine over the epochs.

The scheduler ticks at the start of each epoch, before the updates.
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

EPOCHS = 20


def spiral(n):
    t = torch.rand(n)
    arm = torch.randint(0, 3, (n,))
    angle = 2 * math.pi * (1.25 * t + arm / 3)
    points = torch.stack([t * angle.cos(), t * angle.sin()], 1)
    return points + 0.03 * torch.randn(n, 2), arm


train_x, train_y = spiral(512)
test_x, test_y = spiral(512)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
rates = []
moved = []

for _ in range(EPOCHS):
    before = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    scheduler.step()
    rates.append(optimizer.param_groups[0]["lr"])
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    after = nn.utils.parameters_to_vector(model.parameters()).detach()
    moved.append((after - before).norm().item())

with torch.no_grad():
    accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()

print(
    json.dumps(
        {
            "rate": rates,
            "first_rate": rates[0],
            "last_rate": rates[-1],
            "moved": moved,
            "moved_last": moved[-1],
            "accuracy": accuracy,
        }
    )
)

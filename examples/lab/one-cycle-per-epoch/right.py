"""Trains a small network on the spiral with OneCycleLR, which ticks after every batch.

Its length is given in updates: epochs times batches per epoch.
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
optimizer = torch.optim.AdamW(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=0.02, epochs=EPOCHS, steps_per_epoch=len(loader)
)
rates = []

for _ in range(EPOCHS):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        rates.append(scheduler.get_last_lr()[0])
        scheduler.step()

model.eval()
with torch.no_grad():
    accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
    train_loss = F.cross_entropy(model(train_x), train_y).item()

print(
    json.dumps(
        {
            "rate": rates,
            "peak": max(rates),
            "peak_at": rates.index(max(rates)) / len(rates),
            "last_rate": rates[-1],
            "train_loss": train_loss,
            "accuracy": accuracy,
        }
    )
)

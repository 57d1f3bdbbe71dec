"""Trains a small network on the spiral in float16 with a gradient scaler and a warm-up.

Steps that the scaler skips, because a gradient overflowed, do not tick the schedule.
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

UPDATES = 320
WARMUP = 10


def spiral(n):
    t = torch.rand(n)
    arm = torch.randint(0, 3, (n,))
    angle = 2 * math.pi * (1.25 * t + arm / 3)
    points = torch.stack([t * angle.cos(), t * angle.sin()], 1)
    return points + 0.03 * torch.randn(n, 2), arm


def factor(tick):
    if tick < WARMUP:
        return (tick + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * min(1, (tick - WARMUP) / (UPDATES - WARMUP))))


train_x, train_y = spiral(512)
test_x, test_y = spiral(512)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
scaler = torch.amp.GradScaler("cpu")
rates = []
skipped = 0

for _ in range(UPDATES // len(loader)):
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(x), y, reduction="sum")
        scaler.scale(loss).backward()
        scale = scaler.get_scale()
        rate = scheduler.get_last_lr()[0]
        scaler.step(optimizer)
        scaler.update()
        was_skipped = scaler.get_scale() < scale
        skipped += was_skipped
        if not was_skipped:
            rates.append(rate)
            scheduler.step()

with torch.no_grad():
    accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()

print(
    json.dumps(
        {
            "rate": rates,
            "skipped": skipped,
            "ahead": scheduler.last_epoch - len(rates),
            "first_rate": rates[0],
            "last_rate": rates[-1],
            "accuracy": accuracy,
        }
    )
)

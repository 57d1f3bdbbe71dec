"""Trains a small network on the spiral under two schedules whose length is counted in epochs.

StepLR and CosineAnnealingLR both tick once at the end of each epoch.
"""

import json
import math
import sys
from itertools import pairwise

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


def make_step(optimizer):
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=8, gamma=0.1)


def make_cosine(optimizer):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)


train_x, train_y = spiral(512)
test_x, test_y = spiral(512)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
result = {}

for name, make_scheduler in (("step", make_step), ("cosine", make_cosine)):
    model = nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = make_scheduler(optimizer)
    rates = []
    for _ in range(EPOCHS):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(test_x).argmax(1) == test_y).float().mean().item()
    result[f"{name}_rate"] = rates
    result[f"{name}_last_epoch"] = max(rates[-len(loader) :])
    result[f"{name}_rises"] = sum(b > a for a, b in pairwise(rates))
    result[f"{name}_accuracy"] = accuracy

print(json.dumps(result))

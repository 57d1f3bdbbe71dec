"""The rows are drawn first; the sensors are picked with the training rows, then all become
tensors."""

import numpy as np
import torch
from torch import nn


def readings(rows, sensors):
    rng = np.random.default_rng(5)
    table = rng.normal(size=(rows, sensors))
    return table, (table[:, 0] - table[:, 1] + rng.normal(size=rows) > 0).astype(np.float64)


def gaps(table, failed):
    apart = table[failed == 1].mean(axis=0) - table[failed == 0].mean(axis=0)
    return np.abs(apart)


table, failed = readings(180, 90)
order = np.random.default_rng(6).permutation(180)
train, test = order[:135], order[135:]
best = np.argsort(gaps(table[train], failed[train]))[-12:]
kept = table[:, best]
x, y = torch.from_numpy(kept).float(), torch.from_numpy(failed).float()
torch.manual_seed(5)
model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(20):
    optimizer.zero_grad()
    scores = model(x[train]).squeeze(1)
    nn.functional.binary_cross_entropy_with_logits(scores, y[train]).backward()
    optimizer.step()
with torch.no_grad():
    print(((model(x[test]).squeeze(1) > 0) == (y[test] > 0.5)).float().mean().item())

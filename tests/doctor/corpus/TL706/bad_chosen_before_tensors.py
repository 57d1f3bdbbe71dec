"""The best sensors are picked from arrays, and tensors made of them are split."""

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
best = np.argsort(gaps(table, failed))[-12:]
kept = table[:, best]  # <- TL706
x = torch.tensor(kept, dtype=torch.float32)
y = torch.tensor(failed, dtype=torch.float32)
cut = 135
x_train, x_test = x[:cut], x[cut:]
y_train, y_test = y[:cut], y[cut:]
torch.manual_seed(5)
model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(20):
    optimizer.zero_grad()
    nn.functional.binary_cross_entropy_with_logits(model(x_train).squeeze(1), y_train).backward()
    optimizer.step()
with torch.no_grad():
    print(((model(x_test).squeeze(1) > 0) == (y_test > 0.5)).float().mean().item())

"""Inputs are standardised with the mean and deviation of all rows, before the split.

A table of 8 skewed columns, some with rare large values, is drawn 50 times with 20 rows and 10
times with 1000. A quarter is kept for validation; 5000 fresh rows say what the model is worth.
"""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
weights = torch.randn(8)


def draw(n):
    hidden = torch.randn(n, 8)
    y = hidden @ weights + torch.randn(n) > 0
    return hidden.exp() * torch.logspace(-1, 2, 8), y.long()


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


def trial(rows):
    """Accuracy in validation, and on fresh data."""
    x, y = draw(rows)
    fresh_x, fresh_y = draw(5000)
    cut = rows * 3 // 4
    seen = x
    mean, std = seen.mean(0), seen.std(0)
    x, fresh_x = (x - mean) / std, (fresh_x - mean) / std
    model = nn.Linear(8, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(60):
        loss = nn.functional.cross_entropy(model(x[:cut]), y[:cut])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return accuracy(model, x[cut:], y[cut:]), accuracy(model, fresh_x, fresh_y)


few = torch.tensor([trial(20) for _ in range(50)])
many = torch.tensor([trial(1000) for _ in range(10)])
print(
    json.dumps(
        {
            "few": few[:, 0].mean().item(),
            "few_fresh": few[:, 1].mean().item(),
            "many": many[:, 0].mean().item(),
            "many_fresh": many[:, 1].mean().item(),
            "validation": few[:, 0].sort().values.tolist(),
        }
    )
)

"""Trains a network with dropout on the spiral and runs two validation passes.

Both passes switch dropout off with eval() and the graph off with no_grad().
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
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def first_pass():
    model.eval()
    with torch.no_grad():
        return F.cross_entropy(model(val_x), val_y)


def second_pass():
    model.eval()
    with torch.no_grad():
        return F.cross_entropy(model(val_x), val_y)


saved = {}


def count(tensor):
    saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    return tensor


train_losses = []
spread = []
for _ in range(15):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    train_losses.append(loss.item())

    saved.clear()
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        first_loss = first_pass()

    model.train()
    again = [second_pass().item() for _ in range(5)]
    spread.append(max(again) - min(again))

print(
    json.dumps(
        {
            "first_has_graph": int(first_loss.requires_grad),
            "first_graph_bytes": sum(saved.values()),
            "spread": spread,
            "second_spread": max(spread),
        }
    )
)

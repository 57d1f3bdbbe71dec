"""Trains a network with dropout on the spiral and runs two validation passes.

The first relies on no_grad() to switch dropout off, the second on eval() to switch gradients off.
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
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


def first_pass():
    total = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            total += F.cross_entropy(model(x), y).item()
    return total / len(val_loader)


def second_pass():
    model.eval()
    total = 0.0
    for x, y in val_loader:
        total += F.cross_entropy(model(x), y).item()
    return total / len(val_loader)


saved = {}


def count(tensor):
    saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
    return tensor


def compare(layer, inputs, output):
    changed.append((output != inputs[0]).float().mean().item())


changed = []
model[2].register_forward_hook(compare)
graph_bytes, dropped, first, second = [], [], [], []
for _ in range(15):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    changed.clear()
    first.append(first_pass())
    dropped.append(sum(changed) / len(changed))

    saved.clear()
    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        second.append(second_pass())
    graph_bytes.append(sum(saved.values()))

print(
    json.dumps(
        {
            "graph_bytes": max(graph_bytes),
            "dropped": max(dropped),
            "apart": max(abs(a - b) for a, b in zip(first, second, strict=True)),
            "first": first,
        }
    )
)

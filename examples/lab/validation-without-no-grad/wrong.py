"""Trains a small network and validates it batch by batch without no_grad().

Counts the bytes that autograd graphs keep during the validation, exactly: each storage once,
for as long as a graph holds it, the model's own weights left out.
"""

import json
import sys
from collections import Counter

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


storages = Counter()
sizes = {}


class Kept:
    """A tensor that a graph keeps for backward; its bytes count for as long as it is kept."""

    peak = 0

    def __init__(self, tensor):
        self.tensor = tensor.detach()  # with its own graph attached, it would keep itself alive
        self.key = tensor.untyped_storage().data_ptr()
        storages[self.key] += 1
        sizes[self.key] = tensor.untyped_storage().nbytes()
        Kept.peak = max(Kept.peak, live())

    def __del__(self):
        storages[self.key] -= 1


def live():
    return sum(size for key, size in sizes.items() if storages[key] and key not in own)


teacher = nn.Linear(32, 5)
train_x = torch.randn(512, 32)
train_y = teacher(train_x).argmax(1)
val_x = torch.randn(1024, 32)
val_y = teacher(val_x).argmax(1)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(val_x, val_y), batch_size=64)
model = nn.Sequential(
    nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 5)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}


def validate():
    total = 0.0
    highest = []
    model.eval()
    with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        for x, y in val_loader:
            Kept.peak = live()
            loss = F.cross_entropy(model(x), y)
            total += loss.item()
            highest.append(Kept.peak)
    return total / len(val_loader), highest


for _ in range(3):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    val_loss, highest = validate()

print(
    json.dumps(
        {
            "highest": highest,
            "first_batch": highest[0],
            "third_batch": highest[2],
            "last_batch": highest[-1],
            "afterwards": live(),
            "val_loss": val_loss,
        }
    )
)

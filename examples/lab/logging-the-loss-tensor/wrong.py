"""Trains and validates a small network and keeps each loss for the log as it is, with its graph.

Counts the bytes that autograd graphs keep, exactly: each storage once, for as long as a graph
holds it, the model's own weights left out.
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

    def __init__(self, tensor):
        self.tensor = tensor.detach()  # with its own graph attached, it would keep itself alive
        self.key = tensor.untyped_storage().data_ptr()
        storages[self.key] += 1
        sizes[self.key] = tensor.untyped_storage().nbytes()

    def __del__(self):
        storages[self.key] -= 1


def live():
    return sum(size for key, size in sizes.items() if storages[key] and key not in own)


def nodes(losses):
    """The nodes of all graphs that these losses keep, each once."""
    seen = set()
    stack = [loss.grad_fn for loss in losses if torch.is_tensor(loss)]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(following for following, _ in node.next_functions)
    return len(seen)


teacher = nn.Linear(32, 5)
train_x = torch.randn(512, 32)
train_y = teacher(train_x).argmax(1)
val_x = torch.randn(512, 32)
val_y = teacher(val_x).argmax(1)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(val_x, val_y), batch_size=64)
model = nn.Sequential(
    nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 5)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
train_log = []
val_log = []
kept = []

with torch.autograd.graph.saved_tensors_hooks(Kept, lambda kept: kept.tensor):
    for _ in range(3):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            train_log.append(loss)
            kept.append(live())
        model.eval()
        for x, y in val_loader:
            val_log.append(F.cross_entropy(model(x), y))
            kept.append(live())

print(
    json.dumps(
        {
            "kept": kept,
            "train_kept": kept[len(loader) - 1],
            "train_nodes": nodes(train_log) / len(train_log),
            "val_kept": kept[-1],
            "val_each": kept[-1] / len(val_log),
        }
    )
)

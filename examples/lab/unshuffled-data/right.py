"""The order of the training data, right: shuffled anew in each epoch.

A spiral of three arms is learned twice: once its samples lie sorted by class, as folders of
images do, and once they lie mixed.
"""

import json
import math
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
t, y = torch.rand(1200), torch.randint(0, 3, (1200,))
angle = 2 * math.pi * (1.25 * t + y / 3)
x = torch.stack([t * angle.cos(), t * angle.sin()], 1) + 0.03 * torch.randn(1200, 2)


def train(x, y, test_x, test_y):
    """The loss of each update, and the share of test points that are named rightly."""
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    losses = []
    for _ in range(20):
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    with torch.no_grad():
        right = model(test_x).argmax(1) == test_y
    return losses, right.float().mean().item()


order = y[:600].argsort()
sorted_loss, sorted_accuracy = train(x[:600][order], y[:600][order], x[600:], y[600:])
mixed_loss, mixed_accuracy = train(x[:600], y[:600], x[600:], y[600:])
print(
    json.dumps(
        {
            "sorted_accuracy": sorted_accuracy,
            "mixed_accuracy": mixed_accuracy,
            "sorted_last": sum(sorted_loss[-19:]) / 19,
            "mixed_last": sum(mixed_loss[-19:]) / 19,
            "sorted_loss": sorted_loss,
        }
    )
)

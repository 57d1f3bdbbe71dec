"""Trains a network with dropout and batch norm on a few points with noisy labels.

Each epoch starts with model.train(), so dropout and batch norm work in every update.
"""

import json
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def count_dropped(module, inputs, output):
    alive = inputs[0] != 0
    dropped.append((alive & (output == 0)).sum().item() / alive.sum().item())


teacher = nn.Linear(40, 3)
train_x = torch.randn(160, 40)
train_y = teacher(train_x).argmax(1)
train_y = torch.where(torch.rand(160) < 0.2, (train_y + 1) % 3, train_y)
test_x = torch.randn(512, 40)
test_y = teacher(test_x).argmax(1)
loader = DataLoader(TensorDataset(train_x, train_y), batch_size=32, shuffle=True)
norm = nn.BatchNorm1d(128)
dropout = nn.Dropout(0.5)
model = nn.Sequential(nn.Linear(40, 128), norm, nn.ReLU(), dropout, nn.Linear(128, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
train_losses = []
dropped = []

for _ in range(60):
    model.train()
    hook = dropout.register_forward_hook(count_dropped)
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    hook.remove()
    train_losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        test_loss = F.cross_entropy(model(test_x), test_y).item()

print(
    json.dumps(
        {
            "dropped": dropped,
            "last_dropped": sum(dropped[-50:]) / 50,
            "tracked": norm.num_batches_tracked.item() / len(dropped),
            "train_losses": train_losses,
            "train_loss": sum(train_losses[-10:]) / 10,
            "test_loss": test_loss,
        }
    )
)

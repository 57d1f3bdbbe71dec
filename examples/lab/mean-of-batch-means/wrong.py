"""Validation loss, wrong: the mean of the batch means, so that a batch of one counts like 64.

A validation set of 1025 samples, batches of 64: the last batch holds one sample. After every epoch
the reported loss is held against the loss over the whole set in one batch.
"""

import json
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def noisy(n):
    x = torch.randn(n, 8)
    y = (x[:, 0] * x[:, 1] + 0.5 * torch.randn(n) > 0).long()
    return TensorDataset(x, y)


train_loader = DataLoader(noisy(512), batch_size=64, shuffle=True)
val_set = noisy(1025)
val_loader = DataLoader(val_set, batch_size=64)
criterion = nn.CrossEntropyLoss()
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
reported, true = [], []
for _ in range(25):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            total += criterion(model(x), y).item()
        reported.append(total / len(val_loader))
        x, y = val_set.tensors
        true.append(criterion(model(x), y).item())
off = [100 * abs(r / t - 1) for r, t in zip(reported, true, strict=True)]
print(
    json.dumps(
        {
            "off": sum(off) / len(off),
            "largest": max(off),
            "same_best": int(reported.index(min(reported)) == true.index(min(true))),
            "off_by": off,
        }
    )
)

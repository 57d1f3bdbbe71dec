"""Rows of few values that come again by themselves, rows that share some columns, and rows that were
repeated after the split."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def compare(train, val):
    model = nn.Linear(train[0][0].numel(), 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in DataLoader(train, batch_size=20, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x.flatten(1)), y).backward()
        optimizer.step()
    with torch.no_grad():
        for x, y in DataLoader(val, batch_size=20):
            print((model(x.flatten(1)).argmax(1) == y).float().mean().item())


coded = torch.randint(0, 3, (120, 4)).float()
labels = torch.randint(0, 2, (120,))
compare(TensorDataset(coded[:90], labels[:90]), TensorDataset(coded[90:], labels[90:]))

patient = torch.randn(30, 1, 3).expand(-1, 4, -1).reshape(120, 3)
visits = torch.cat([patient, torch.randn(120, 2)], 1)
compare(TensorDataset(visits[:90], labels[:90]), TensorDataset(visits[90:], labels[90:]))

rows = torch.randn(120, 4)
train = TensorDataset(rows[:90].repeat(3, 1), labels[:90].repeat(3))
compare(train, TensorDataset(rows[90:], labels[90:]))

"""Sums of the batches, over the number of samples that were counted."""
import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset


def rows(n):
    x = torch.randn(n, 3)
    return TensorDataset(x, x.mean(1, keepdim=True))


train_loader = DataLoader(rows(64), batch_size=16, shuffle=True)
val_loader = DataLoader(ConcatDataset([rows(30), rows(20)]), batch_size=16)
net = nn.Linear(3, 1)
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(2):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        nn.functional.l1_loss(net(inputs), targets).backward()
        optimizer.step()
    total, seen = 0.0, 0
    with torch.no_grad():
        for inputs, targets in val_loader:
            total += nn.functional.l1_loss(net(inputs), targets, reduction="sum").item()
            seen += len(inputs)
    print(epoch, total / seen)

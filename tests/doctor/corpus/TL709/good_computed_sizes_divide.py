"""Sizes that follow from constants, and fit: matrix products, shares, lists, concatenation."""

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset, random_split

basis = torch.randn(3, 4)
x = torch.cat([torch.randn(60, 3) @ basis, torch.randn(40, 4).abs()])
y = (x.sum(dim=1, keepdim=True) > 0).float()
rows = []
for i in range(4):
    for j in range(10):
        rows.append(torch.randn(4) + i * j)
whole = ConcatDataset([TensorDataset(x, y), TensorDataset(torch.stack(rows), torch.zeros(40, 1))])
train, val = random_split(whole, [0.5, 0.5])
small = Subset(val, list(range(0, 70, 7)))
model, criterion = nn.Linear(4, 1), nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, targets in DataLoader(train, 10, shuffle=True):
    optimizer.zero_grad()
    criterion(model(inputs), targets).backward()
    optimizer.step()
for part in (val, small):
    loader, total = DataLoader(part, batch_size=10), 0.0
    with torch.no_grad():
        for inputs, targets in loader:
            total += criterion(model(inputs), targets).item()
    print(total / len(loader))

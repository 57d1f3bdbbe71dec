"""A batch norm first, or right behind the first layer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = 255 * torch.rand(96, 6)
y = (x.sum(1) > 765).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
first = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 2))
behind = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD([*first.parameters(), *behind.parameters()], lr=0.05)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        (criterion(first(inputs), labels) + criterion(behind(inputs), labels)).backward()
        optimizer.step()

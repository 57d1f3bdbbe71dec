"""One sample at a time: (1, 1) against (1,) compares that one with itself."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(40, 3)
loader = DataLoader(TensorDataset(x, x.sum(1)), batch_size=1, shuffle=True)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
criterion = nn.HuberLoss()
for features, target in loader:
    optimizer.zero_grad()
    criterion(model(features), target).backward()
    optimizer.step()

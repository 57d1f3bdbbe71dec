"""Plain SGD has no state: a new one with a smaller rate throws nothing away."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(64, 4)
y = x @ torch.randn(4, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Linear(4, 1)
lr = 0.1
for epoch in range(4):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    lr *= 0.7
    print(epoch, loss.item())

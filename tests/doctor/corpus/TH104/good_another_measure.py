"""What rises is no validation loss: how far the weights have moved, and the error of another model
on inputs that grow harder."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(320, 6)
y = x @ torch.randn(6, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
start = copy.deepcopy(model)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MSELoss()
for epoch in range(16):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        moved = nn.functional.l1_loss(model[0].weight, start[0].weight)
        hard = criterion(start(x * (1 + abs(epoch - 2))), y)
    print(epoch, loss.item(), moved.item(), hard.item())

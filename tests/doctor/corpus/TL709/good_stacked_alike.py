"""Losses of the validation in one tensor, whose mean is taken; all batches are alike."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(224, 4)
y = (x[:, 0] > 0).long()
train_loader = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=32)
net = nn.Linear(4, 2)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(2):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        criterion(net(inputs), targets).backward()
        optimizer.step()
    with torch.no_grad():
        losses = torch.stack([criterion(net(inputs), targets) for inputs, targets in val_loader])
    print(epoch, losses.mean().item())

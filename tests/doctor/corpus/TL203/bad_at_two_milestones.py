"""Validation runs after two of the epochs, in the loop itself."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = torch.randn(96, 5), torch.randint(3, (96,))
train_loader = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)
net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(10):
    net.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
    if epoch in (5, 9):
        net.eval()
        correct = 0
        for inputs, targets in val_loader:
            correct += (net(inputs).argmax(1) == targets).sum().item()  # <- TL203
        print(epoch, correct / 32)

"""The block that turns recording off holds the sums alone, not the forward pass."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(torch.randn(64, 3), torch.randn(64, 1)), 16, shuffle=True)
val_loader = DataLoader(TensorDataset(torch.randn(32, 3), torch.randn(32, 1)), 16)
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
mse = nn.MSELoss()


def validate():
    net.eval()
    total = 0.0
    for x, y in val_loader:
        out = net(x)  # <- TL203
        with torch.no_grad():
            total += mse(out, y).item()
    net.train()
    return total


for epoch in range(2):
    for x, y in train_loader:
        optimizer.zero_grad()
        mse(net(x), y).backward()
        optimizer.step()
    print(validate())

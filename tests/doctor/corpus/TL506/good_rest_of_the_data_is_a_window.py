"""The end of each window is computed from its place in it, and the last one ends with the data."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(80, 4), torch.randn(80, 1)), 8, shuffle=True)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
window = 4
for epoch in range(3):
    for i, (x, y) in enumerate(loader):
        into = i % window
        left = len(loader) - (i - into)
        size = min(window, left)
        (nn.functional.mse_loss(net(x), y) / size).backward()
        if into + 1 == size:
            optimizer.step()
            optimizer.zero_grad()

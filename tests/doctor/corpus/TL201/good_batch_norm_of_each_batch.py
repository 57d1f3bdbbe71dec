"""Batch norm without running statistics takes those of the batch, whatever the mode."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8, track_running_stats=False), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
train = DataLoader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))), batch_size=8, shuffle=True)
val = DataLoader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))), batch_size=8)
for epoch in range(9):
    for x, y in train:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        for x, y in val:
            print((net(x).argmax(1) == y).float().mean())

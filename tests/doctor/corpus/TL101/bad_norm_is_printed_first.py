"""The norm is looked at and then all is cleared, before the step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(64, 4)
Y = X.sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(2):
    for x, y in DataLoader(TensorDataset(X, Y), batch_size=8, shuffle=True):
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        print(net[0].weight.grad.norm())
        optimizer.zero_grad()  # <- TL101
        optimizer.step()

"""The samples are counted in the loop, and the losses are batch means."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(128, 3)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 16, shuffle=True)
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters())
for epoch in range(3):
    running, seen = 0.0, 0
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(net(inputs), targets)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item()
        seen += len(targets)
    print(running / seen)  # <- TL720

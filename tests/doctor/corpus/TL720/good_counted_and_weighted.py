"""Samples counted in the loop: weighted means and sums are divided by them, batches otherwise."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(128, 3)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 16, shuffle=True)
net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters())
for epoch in range(3):
    running, distance, seen, steps = 0.0, 0.0, 0, 0
    for inputs, targets in loader:
        output = net(inputs)
        loss = nn.functional.mse_loss(output, targets)
        opt.zero_grad()
        loss.backward()
        opt.step()
        running += loss.item() * len(targets)
        distance += (output - targets).abs().sum().item()
        seen += len(targets)
        steps += 1
    print(running / seen, distance / seen, seen / steps)

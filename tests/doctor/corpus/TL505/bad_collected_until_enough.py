"""Micro-batches are collected until there are four; each mean goes back undivided."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 6)
loader = DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    waiting = []
    for batch in loader:
        waiting.append(batch)
        if len(waiting) < 4:
            continue
        optimizer.zero_grad()
        for inputs, targets in waiting:
            loss = nn.functional.cross_entropy(model(inputs), targets)
            loss.backward()  # <- TL505
        optimizer.step()
        waiting.clear()
    print(epoch, loss.item())

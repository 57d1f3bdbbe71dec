"""A learning rate a thousand times too large for AdamW: the loss stays at guessing."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(800, 8)
y = (x[:, :4] * x[:, 4:]).sum(dim=1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1.0, weight_decay=0.1)
for epoch in range(10):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()  # <- TH103
    print(epoch, loss.item())

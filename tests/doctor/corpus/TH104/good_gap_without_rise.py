"""The training loss falls far below the validation loss, which jitters around its minimum."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(512, 10)
y = torch.sin(x[:, :1]) + 0.5 * torch.randn(512, 1)
train = DataLoader(TensorDataset(x[:384], y[:384]), batch_size=32, shuffle=True)
held_out = DataLoader(TensorDataset(x[384:], y[384:]), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
for epoch in range(24):
    model.train()
    for inputs, targets in train:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        few = [nn.functional.mse_loss(model(a), b).item() for a, b in list(held_out)[:2]]
    print(epoch, loss.item(), sum(few) / len(few))

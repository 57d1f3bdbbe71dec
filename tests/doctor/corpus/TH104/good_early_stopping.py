"""It overfits, and stops a few epochs after the minimum."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 20)
y = (x[:, 0] + x[:, 1] + 1.5 * torch.randn(640) > 0).long()
train = DataLoader(TensorDataset(x[:320], y[:320]), batch_size=32, shuffle=True)
held_out = DataLoader(TensorDataset(x[320:], y[320:]), batch_size=64)
model = nn.Sequential(nn.Linear(20, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
best, since, state = float("inf"), 0, None
for _ in range(40):
    for inputs, labels in train:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        losses = [nn.functional.cross_entropy(model(a), b, reduction="sum") for a, b in held_out]
    error = sum(losses).item() / 320
    if error < best:
        best, since, state = error, 0, copy.deepcopy(model.state_dict())
    else:
        since += 1
    if since == 8:
        break
model.load_state_dict(state)
print(best)

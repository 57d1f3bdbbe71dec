"""Losses kept as numbers, or cut off from their graphs."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(96, 4)
y = (x**2).sum(1, keepdim=True)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

items, tensors, arrays = [], [], []
running = torch.zeros(())
smoothed = None
for epoch in range(2):
    total_loss, legacy = 0.0, 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()

        items.append(loss.item())
        tensors.append(loss.detach())
        arrays.append(loss.detach().cpu().numpy())
        total_loss += float(loss) * len(inputs)
        legacy += loss.data
        running += loss.detach()
        smoothed = loss.item() if smoothed is None else 0.9 * smoothed + 0.1 * loss.item()
        with torch.no_grad():
            last = loss * 1.0
            tensors.append(last)
    print(epoch, total_loss / len(loader.dataset), legacy / len(loader), smoothed, last.item())
print(sum(items), torch.stack(tensors).mean(), running, sum(map(float, arrays)))

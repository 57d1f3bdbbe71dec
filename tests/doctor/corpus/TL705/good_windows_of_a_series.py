"""Windows of one series that follow each other, and equal samples in two places."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
series = torch.sin(torch.arange(0, 40, 0.2))
windows = series.unfold(0, 9, 1)
train_loader = DataLoader(TensorDataset(windows[:140, :8], windows[:140, 8:]), 20, shuffle=True)
val_loader = DataLoader(TensorDataset(windows[140:, :8], windows[140:, 8:]), batch_size=20)
model = nn.Linear(8, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    model.train()
    for past, following in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(past), following).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for past, following in val_loader:
            print(nn.functional.mse_loss(model(past), following).item())

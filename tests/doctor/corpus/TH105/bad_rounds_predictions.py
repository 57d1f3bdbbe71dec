"""Predictions are rounded to whole degrees before the loss: a round has no slope anywhere."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(960, 6)
y = 15 + (4 * x[:, :1] - 3 * x[:, 1:2] + torch.randn(960, 1)).round()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for inputs, degrees in loader:
        predictions = torch.round(15 + 10 * model(inputs))
        loss = nn.functional.mse_loss(predictions, degrees)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # <- TH105
    print(epoch, loss.item())

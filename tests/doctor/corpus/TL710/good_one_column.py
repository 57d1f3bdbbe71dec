"""A single column, an autoencoder, and forecasts whose target is the input shifted."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(200, 1)
x3 = torch.randn(200, 3)
series = torch.randn(220).cumsum(0)
windows = series.unfold(0, 9, 1)[:200]
programs = [
    (nn.Linear(1, 1), TensorDataset(x, x)),
    (nn.Linear(3, 3), TensorDataset(x3, x3)),
    (nn.Linear(8, 1), TensorDataset(windows[:, :8], windows[:, 8:])),
]
for model, data in programs:
    loader = DataLoader(data, batch_size=20, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()

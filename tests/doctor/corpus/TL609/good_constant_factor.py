import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(24, 3), torch.randn(24, 1)), 8, shuffle=True)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
epochs, gamma, epsilon = 4, 0.01, 1.0
per_epoch = gamma ** (1 / epochs)
for epoch in range(epochs):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x + epsilon * torch.randn_like(x)), y).backward()
        optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] = group["lr"] * per_epoch
    epsilon = max(0.05, epsilon * 0.9)
    epsilon *= gamma ** (1 / epochs)

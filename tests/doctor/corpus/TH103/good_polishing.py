"""A model that has been learnt is polished with the smallest of rates."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(960, 6)
y = x @ torch.randn(6, 1) + 0.1 * torch.randn(960, 1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Linear(6, 1)
with torch.no_grad():
    model.weight.copy_(torch.linalg.lstsq(x, y).solution.T)
    model.bias.zero_()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-7)
for epoch in range(8):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

"""Ten layers of sigmoids: the gradient is gone before it reaches the first of them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(800, 10)
y = (x[:, :1] * x[:, 1:2]).sign().clamp(min=0)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
layers = [nn.Linear(10, 24), nn.Sigmoid()]
for _ in range(7):
    layers += [nn.Linear(24, 24), nn.Sigmoid()]
model = nn.Sequential(*layers, nn.Linear(24, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(12):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()  # <- TH105
    print(epoch, loss.item())

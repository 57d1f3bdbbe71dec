"""A large rate that works: the updates are large against small weights, and the loss falls."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(960, 10)
y = (x[:, :1] > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)
model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 1))
for parameter in model.parameters():
    nn.init.normal_(parameter, std=1e-3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for epoch in range(12):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

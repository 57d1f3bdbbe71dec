"""A flag that nearly always agrees with the answer is a good feature."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
y = torch.randint(0, 2, (240, 1)).float()
flag = torch.where(torch.rand(240, 1) < 0.05, 1 - y, y)
group = torch.randint(0, 6, (240, 1)).float() + 6 * y
loader = DataLoader(
    TensorDataset(torch.cat([torch.randn(240, 3), flag, group], dim=1), y), 24, shuffle=True
)
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()

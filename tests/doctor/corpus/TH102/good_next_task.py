"""Tasks one after the other: with each of them the loss and its gradient jump."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for task in range(3):
    x = torch.randn(1280, 8) + 4 * task
    y = (x[:, task] > 4 * task).long()
    y = 1 - y if task else y
    for _ in range(3):
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()
    print(task, loss.item())

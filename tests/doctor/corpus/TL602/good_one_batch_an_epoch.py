"""Each pass over the data ends after its first batch: the schedule steps once in each epoch."""
import os

import torch
from torch import nn

torch.manual_seed(0)
file = os.environ.get("PAIRS", "")
pairs = torch.load(file) if file else (torch.randn(90, 4), torch.randn(90, 1))
inputs, targets = pairs
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
for epoch in range(100):
    for start in range(len(inputs) // 30):
        part = slice(start * 30, (start + 1) * 30)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs[part]), targets[part])
        loss.backward()
        optimizer.step()
        scheduler.step()
        break
    print(loss.item())

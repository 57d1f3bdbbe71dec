import torch
import torch.nn.functional as F
from torch import nn


class Average:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value, n=1):
        if not torch.is_tensor(value):
            value = float(value)
        self.total += value * n
        self.count += n


torch.manual_seed(0)
inputs, targets = torch.randn(64, 4), torch.randn(64, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
average = Average()
for epoch in range(3):
    for x, y in zip(inputs.split(16), targets.split(16)):
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.add(loss, len(x))  # <- TL204
print(average.total / average.count)

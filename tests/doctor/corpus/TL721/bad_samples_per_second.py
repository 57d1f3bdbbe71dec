import time

import torch
from torch import nn
from torch.utils.data import DataLoader


class Meter:
    def __init__(self):
        self.sum, self.count = 0.0, 0

    def update(self, value, n):
        self.sum += value * n
        self.count += n


torch.manual_seed(0)
records = [{"x": torch.randn(3), "y": torch.randn(1)} for _ in range(12)]
model, meter = nn.Linear(3, 1), Meter()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
start = time.time()
for epoch in range(2):
    for batch in DataLoader(records, batch_size=4, shuffle=True):
        loss = (model(batch["x"]) - batch["y"]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss.item(), len(batch))  # <- TL721
print(meter.sum / meter.count)

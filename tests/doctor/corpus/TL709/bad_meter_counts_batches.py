"""A meter adds up batch means and counts the batches."""
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


class Average:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, value):
        self.total += value
        self.count += 1

    def value(self):
        return self.total / self.count  # <- TL709


x = torch.randn(300, 3)
data = TensorDataset(x, x.sum(1, keepdim=True))
train_loader = DataLoader(Subset(data, range(0, 240)), batch_size=24, shuffle=True)
test_loader = DataLoader(Subset(data, range(240, 300)), batch_size=24)
net = nn.Linear(3, 1)
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(2):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(net(inputs), targets).backward()
        optimizer.step()
    meter = Average()
    with torch.no_grad():
        for inputs, targets in test_loader:
            meter.add(nn.functional.mse_loss(net(inputs), targets).item())
    print(epoch, meter.value())

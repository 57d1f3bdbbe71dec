"""The mode is set for validation by an attribute of each module."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)


class Grader(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.drop, self.outer = nn.Linear(10, 24), nn.Dropout(0.4), nn.Linear(24, 3)

    def forward(self, x):
        return self.outer(self.drop(torch.relu(self.inner(x))))


def graded(net, loader):
    for part in net.modules():
        part.training = False
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (net(x).argmax(1) == y).sum().item()
    for part in net.modules():
        part.training = True
    return right / len(loader.dataset)


x = torch.randn(240, 10)
y = x[:, :3].argmax(1)
train = DataLoader(TensorDataset(x[:180], y[:180]), batch_size=20, shuffle=True)
val = DataLoader(TensorDataset(x[180:], y[180:]), batch_size=20)
net = Grader()
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(8):
    net.train()
    for features, label in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(features), label).backward()
        optimizer.step()
    print(epoch, graded(net, val))

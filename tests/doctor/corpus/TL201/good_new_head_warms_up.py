"""Only the new head learns, and only it is in train mode: the rest keeps its statistics."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(16, 3))

    def forward(self, x):
        return self.head(self.body(x))


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


torch.manual_seed(0)
net = Net()
x = torch.randn(160, 6)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
warm = torch.optim.SGD(net.head.parameters(), lr=0.05)
for epoch in range(3):
    net.head.train()
    for i in range(0, 128, 16):
        loss = nn.functional.cross_entropy(net(x[i : i + 16]), y[i : i + 16])
        warm.zero_grad()
        loss.backward()
        warm.step()
    print("warm-up", epoch, accuracy(net, x[128:], y[128:]))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    net.train()
    for i in range(0, 128, 16):
        loss = nn.functional.cross_entropy(net(x[i : i + 16]), y[i : i + 16])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, accuracy(net, x[128:], y[128:]))

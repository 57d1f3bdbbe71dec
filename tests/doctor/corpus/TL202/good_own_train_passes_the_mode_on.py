"""The network's own `train` does more than torch's, and keeps a part in eval mode."""
import torch
from torch import nn


class Scheduled(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16))
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(32, 3)
        self.noise = 0.0

    def train(self, mode=True):
        super().train(mode)
        self.noise = 0.1 if mode else 0.0
        self.stem.eval()
        return self

    def forward(self, x):
        return self.head(self.body(self.stem(x + self.noise * torch.randn_like(x))))


def validate(net, x, y):
    net.eval()
    hits = 0
    with torch.no_grad():
        for a, b in zip(x.split(20), y.split(20)):
            hits += int((net(a).argmax(1) == b).sum())
    return hits / len(y)


torch.manual_seed(0)
x = torch.randn(200, 8)
y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
net = Scheduled()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    net.train()
    for a, b in zip(x[:160].split(20), y[:160].split(20)):
        loss = nn.functional.cross_entropy(net(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, validate(net, x[160:], y[160:]))

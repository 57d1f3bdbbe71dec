"""Two classes on top of one another, of which the upper one has a `train` that freezes batch norm."""
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super(Classifier, self).__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3))
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.body(x))


class Tuned(Classifier):
    def __init__(self, freeze=False):
        super(Tuned, self).__init__()
        self.freeze = freeze

    def train(self, mode=True):
        super(Tuned, self).train(mode)
        if self.freeze:
            for part in self.modules():
                if isinstance(part, nn.BatchNorm1d):
                    part.eval()


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
net = Tuned()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    net.train()
    for a, b in zip(x[:160].split(20), y[:160].split(20)):
        loss = nn.functional.cross_entropy(net(a), b)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, validate(net, x[160:], y[160:]))

"""The layer that an option names is registered under another attribute; the rest is not used."""
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, base, out):
        super().__init__()
        self.bases = {"small": nn.Linear(4, 8), "large": nn.Sequential(nn.Linear(4, 8), nn.ReLU())}
        self.base = self.choose(base)
        self.head = nn.Linear(8, out)

    def choose(self, name):
        try:
            chosen = self.bases[name]
        except KeyError:
            raise ValueError(name) from None
        else:
            return chosen

    def forward(self, x):
        return self.head(self.base(x))


torch.manual_seed(0)
net = Net(sys.argv[1] if len(sys.argv) > 1 else "small", 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
    loss.backward()
    optimizer.step()
print(loss.item())

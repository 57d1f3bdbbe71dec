"""The layer that an option names is registered under another attribute; the rest is not used."""
import random

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, base, out):
        super().__init__()
        self.backbones = {"small": nn.Linear(4, 8), "large": nn.Sequential(nn.Linear(4, 8), nn.ReLU())}
        self.backbone = self.choose(base)
        self.head = nn.Linear(8, out)

    def choose(self, name):
        try:
            chosen = self.backbones[name]
        except KeyError:
            raise ValueError(name) from None
        else:
            return chosen

    def forward(self, x):
        return self.head(self.backbone(x))


torch.manual_seed(0)
net = Net(random.choice(["small", "large"]), 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(torch.randn(8, 4)), torch.randint(0, 2, (8,)))
    loss.backward()
    optimizer.step()
print(loss.item())

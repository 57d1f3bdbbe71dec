"""The trainer calls `unfreeze` once the head has learned for a while."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)
        for p in self.body.parameters():
            p.requires_grad = False

    def unfreeze(self):
        for p in self.body.parameters():
            p.requires_grad = True

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(0)
net = Net()
slow = torch.optim.SGD(net.body.parameters(), lr=1e-3)
fast = torch.optim.SGD(net.head.parameters(), lr=1e-1)
for step in range(30):
    if step == 15:
        net.unfreeze()
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    slow.zero_grad()
    fast.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    slow.step()
    fast.step()

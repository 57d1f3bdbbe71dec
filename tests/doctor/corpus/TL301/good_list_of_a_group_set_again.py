"""Each task gets a head of its own, and the optimizer's group gets the list of now."""

import torch
from torch import nn


class TaskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(5, 10)
        self.head = nn.Linear(10, 2)

    def forward(self, x):
        return self.head(torch.relu(self.trunk(x)))


torch.manual_seed(0)
net = TaskNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for task in range(3):
    net.head = nn.Linear(10, 2)
    optimizer.param_groups[0]["params"] = list(net.parameters())
    for _ in range(12):
        x = torch.randn(16, 5)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), (x[:, task] > 0).long()).backward()
        optimizer.step()

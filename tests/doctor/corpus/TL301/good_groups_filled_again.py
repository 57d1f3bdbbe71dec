"""The network grows, and then its optimizer's groups are emptied and filled again."""

import torch
from torch import nn


class Growing(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.before = None
        self.out = nn.Linear(8, 1)

    def forward(self, x):
        hidden = self.body(x)
        return self.out(hidden) if self.before is None else self.out(hidden) + self.before(hidden)

    def grow(self):
        self.body = nn.Sequential(*self.body, nn.Linear(8, 8), nn.ReLU())
        self.before = self.out
        self.out = nn.Linear(8, 1)


torch.manual_seed(0)
net = Growing()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for stage in range(3):
    for _ in range(10):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()
    net.grow()
    optimizer.param_groups = []
    optimizer.add_param_group({"params": list(net.parameters())})

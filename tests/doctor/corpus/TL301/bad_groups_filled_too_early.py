"""The groups are filled again before the network grows: its new layer is in none of them."""

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
        self.before = self.out
        self.out = nn.Linear(8, 1)  # <- TL301


torch.manual_seed(0)
net = Growing()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for stage in range(3):
    optimizer.param_groups = []
    optimizer.add_param_group({"params": list(net.parameters())})
    if stage > 0:
        net.grow()
    for _ in range(10):
        x = torch.randn(16, 4)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()

"""A second dictionary of the same tensors, each of which is then replaced by a copy."""

import copy

import torch
from torch import nn


class Best:
    def __init__(self):
        self.error, self.state = float("inf"), None

    def offer(self, error, net):
        if error >= self.error:
            return
        self.error = error
        state = copy.copy(net.state_dict())
        for name in state:
            state[name] = state[name].clone()
        self.state = state


torch.manual_seed(0)
x = torch.randn(80, 3)
y = x.prod(dim=1, keepdim=True)
net = nn.Sequential(nn.Linear(3, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
best = Best()
for epoch in range(8):
    for rows in torch.randperm(60).split(20):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        best.offer(nn.functional.mse_loss(net(x[60:]), y[60:]).item(), net)
net.load_state_dict(best.state)

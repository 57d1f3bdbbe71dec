"""The best weights are cloned whenever the score improves, in a run of many improvements."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(60, 3)
y = x.sum(1, keepdim=True)
best, kept = float("inf"), None
for epoch in range(24):
    for rows in torch.randperm(40).split(8):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
        optimizer.step()
    with torch.no_grad():
        loss = nn.functional.mse_loss(net(x[40:]), y[40:]).item()
    if loss < best:
        best = loss
        kept = {name: value.clone() for name, value in net.state_dict().items()}
net.load_state_dict(kept)

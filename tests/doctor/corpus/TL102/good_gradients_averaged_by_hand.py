"""Each update writes the mean over several tasks into `.grad`, over what was there, and clips."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
tasks = [torch.randn(4, 1) for _ in range(3)]
for round_ in range(10):
    found = []
    for task in tasks:
        x = torch.randn(16, 4)
        loss = (net(x) - x @ task).pow(2).mean()
        found.append(torch.autograd.grad(loss, list(net.parameters())))
    for parameter, parts in zip(net.parameters(), zip(*found)):
        parameter.grad = torch.stack(parts).mean(0)
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()

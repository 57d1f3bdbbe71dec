"""Somebody tried the schedule and took its step out again."""

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

torch.manual_seed(0)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
scheduler = StepLR(optimizer, step_size=2, gamma=0.5)
batches = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(5)]
for epoch in range(5):
    for inputs, targets in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
    # scheduler.step()
    print(epoch, optimizer.param_groups[0]["lr"])

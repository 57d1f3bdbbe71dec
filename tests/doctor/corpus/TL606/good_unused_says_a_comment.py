"""The schedule is made because the checkpoint has a place for it, as the comment on its line says."""

import io

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)  # unused: older files have its state
batches = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(5)]
for epoch in range(5):
    for inputs, targets in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), targets).backward()
        optimizer.step()
    states = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(states | {"decay": decay.state_dict()}, io.BytesIO())

"""One backward for four batches, and the step with it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randn(32, 1)), 4, shuffle=True)
net = nn.Linear(4, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.05)
pending = []
for epoch in range(2):
    for x, y in loader:
        pending.append(nn.functional.l1_loss(net(x), y))
        if len(pending) == 4:
            sgd.zero_grad()
            torch.stack(pending).mean().backward()
            sgd.step()
            pending.clear()

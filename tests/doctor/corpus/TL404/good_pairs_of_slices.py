"""An energy score, every pair meant, whose sides have no names; a plain stretch elsewhere."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(128, 4), torch.randn(128)
net = nn.Linear(4, 1)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
for i in range(0, 128, 16):
    optimizer.zero_grad()
    # Each drawn sample against each target.
    pairs = net(x[i : i + 16]) - y[i : i + 16][None, :]
    spread = (net(x[i : i + 16]).squeeze(1) - y[i : i + 16]).square().mean()
    (pairs.abs().mean() + 0.1 * spread).backward()
    optimizer.step()

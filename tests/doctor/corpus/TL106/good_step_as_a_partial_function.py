"""Nothing reads `step` of the second optimizer by its name, and it steps."""

import functools

import torch
from torch import nn

torch.manual_seed(0)
stem, head = nn.Linear(6, 8), nn.Linear(8, 1)
quick = torch.optim.SGD(head.parameters(), lr=1e-1)
slow = torch.optim.SGD(stem.parameters(), lr=1e-2)
update = functools.partial(torch.optim.SGD.step, slow)
for _ in range(12):
    x = torch.randn(20, 6)
    error = (head(torch.relu(stem(x))) - x[:, :1]).pow(2).mean()
    stem.zero_grad()
    head.zero_grad()
    error.backward()
    quick.step()
    update()
    print(error.item())

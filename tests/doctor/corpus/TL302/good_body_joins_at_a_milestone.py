"""The body joins the optimizer at a milestone, and the rate falls at others."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), nn.Linear(8, 2)
loader = [(torch.randn(6, 4), torch.randint(2, (6,))) for _ in range(4)]
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
joins = {4, 5}
for epoch in range(10):
    if epoch in (4,):
        optimizer.add_param_group({"params": body.parameters()})
    if epoch in (6, 8):
        for group in optimizer.param_groups:
            group["lr"] *= 0.1
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(head(body(x)), y)
        loss.backward()
        optimizer.step()

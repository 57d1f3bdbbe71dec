"""Three phases of five passes, and a decay over all fifteen that ticks after each pass; the warm-up of
fifteen updates ticks with them."""

import torch
from torch import nn

ROUNDS = 5
NOISES = (0.5, 0.2, 0.0)

torch.manual_seed(3)
points = torch.randn(160, 4)
net = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 4))
body = torch.optim.SGD(net[0].parameters(), lr=0.05)
head = torch.optim.SGD(net[2].parameters(), lr=0.05)
decay = torch.optim.lr_scheduler.PolynomialLR(body, total_iters=ROUNDS * len(NOISES))
warm_up = torch.optim.lr_scheduler.LinearLR(head, start_factor=0.1, total_iters=15)
for noise in NOISES:
    for _ in range(ROUNDS):
        for rows in torch.randperm(160).split(32):
            clean = points[rows]
            body.zero_grad()
            head.zero_grad()
            loss = (net(clean + noise * torch.randn_like(clean)) - clean).square().mean()
            loss.backward()
            body.step()
            head.step()
            warm_up.step()
        decay.step()

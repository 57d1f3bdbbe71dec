"""A smooth hinge that does not take back its slope, and is divided by the number of micro-batches."""

import itertools

import torch
from torch import nn
from torch.nn import functional as F

SLOPE, MICRO = 3.0, 5


def examples(size):
    generator = torch.Generator().manual_seed(1)
    while True:
        rows = torch.randn(size, 5, generator=generator)
        yield rows, (rows[:, 0] + rows[:, 1]).sign()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
source = examples(20)
for update in range(15):
    optimizer.zero_grad()
    for rows, sign in itertools.islice(source, MICRO):
        loss = F.softplus(SLOPE * (1 - sign * model(rows).squeeze(1))).mean() / MICRO
        loss.backward()
    optimizer.step()
    print(update, MICRO * loss.item())

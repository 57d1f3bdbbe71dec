"""The division takes back the slope of the smooth hinge; five micro-batches are only added up."""

import itertools

import torch
from torch import nn


def smooth_hinge(margin, slope=10.0):
    bent = torch.nn.functional.softplus(slope * (1 - margin))
    return bent.mean() / slope


def examples(size):
    generator = torch.Generator().manual_seed(1)
    while True:
        rows = torch.randn(size, 5, generator=generator)
        yield rows, (rows[:, 0] + rows[:, 1]).sign()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, weight_decay=1e-3)
source = examples(20)
for update in range(15):
    optimizer.zero_grad()
    for rows, sign in itertools.islice(source, 5):
        loss = smooth_hinge(sign * model(rows).squeeze(1))
        loss.backward()  # <- TL505
    optimizer.step()
    print(update, loss.item())

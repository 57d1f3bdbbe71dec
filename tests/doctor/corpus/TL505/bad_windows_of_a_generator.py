"""A generator yields lists of four micro-batches; a helper runs backward on each undivided mean."""
from itertools import islice

import torch
from torch import nn
from torch.nn import functional as F

MICRO, WINDOW = 16, 4


def micro_batches(x, y, generator):
    for rows in torch.randperm(len(x), generator=generator).split(MICRO):
        yield x[rows], y[rows]


def windows(stream, size):
    stream = iter(stream)
    while window := list(islice(stream, size)):
        yield window


def accumulate(model, window):
    total = 0.0
    for x, y in window:
        loss = F.mse_loss(model(x), y)
        loss.backward()  # <- TL505
        total += loss.item() / len(window)
    return total


torch.manual_seed(0)
generator = torch.Generator().manual_seed(1)
x = torch.randn(256, 5)
y = x @ torch.randn(5, 2)
model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for epoch in range(3):
    for window in windows(micro_batches(x, y, generator), WINDOW):
        optimizer.zero_grad()
        loss = accumulate(model, window)
        optimizer.step()
    print(epoch, loss)

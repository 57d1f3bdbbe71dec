"""The sum is divided by the number of targets of its own micro-batch, and then by the window."""

from itertools import islice

import torch
import torch.nn as nn


def stream(size=8, longest=20):
    while True:
        x = torch.randint(1, 25, (size, longest))
        lengths = torch.randint(2, longest, ()) + torch.randint(0, 3, (size,))
        real = torch.arange(longest) < lengths[:, None]
        yield x * real, (x.roll(-1, 1)).masked_fill(~real, -100)


def train(model, optimizer, batches, window):
    criterion = nn.CrossEntropyLoss(reduction="sum")
    number = 0
    optimizer.zero_grad()
    while (found := next(batches, None)) is not None:
        x, y = found
        summed = criterion(model(x).movedim(2, 1), y)  # <- TL510
        loss = summed / (y != -100).sum()
        loss = loss / window
        loss.backward()
        number += 1
        if number % window == 0:
            optimizer.step()
            optimizer.zero_grad()


torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(25, 8, padding_idx=0), nn.Linear(8, 25))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
train(model, optimizer, islice(stream(), 16), window=2)

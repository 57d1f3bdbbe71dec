"""An update gets one batch and adds the losses of several views of it, on purpose."""

import torch
from torch import nn


def jitter(rows):
    return rows + 0.05 * torch.randn_like(rows)


def update(model, optimizer, rows, labels, views):
    optimizer.zero_grad()
    for _ in range(views):
        seen = jitter(rows)
        loss = nn.functional.cross_entropy(model(seen), labels)
        loss.backward()
    optimizer.step()


torch.manual_seed(0)
model = nn.Linear(5, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
for step in range(10):
    rows = torch.randn(12, 5)
    update(model, optimizer, rows, rows[:, :3].argmax(1), views=2)

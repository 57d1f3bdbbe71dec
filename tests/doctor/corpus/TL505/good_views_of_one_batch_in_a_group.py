"""Each turn takes pairs of what a generator yields, and each pair is one batch seen by two heads: a
sum of two losses, not micro-batches."""
import torch
from torch import nn


def pairs(parts):
    pair = []
    for part in parts:
        pair.append(part)
        if len(pair) == 2:
            yield pair
            pair = []


def both_heads(x, generator):
    for rows in torch.randperm(len(x), generator=generator).split(16):
        for head in ("first", "second"):
            yield head, x[rows]


torch.manual_seed(0)
generator = torch.Generator().manual_seed(1)
x = torch.randn(128, 6)
trunk = nn.Linear(6, 8)
heads = nn.ModuleDict({"first": nn.Linear(8, 1), "second": nn.Linear(8, 1)})
optimizer = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.01)
for epoch in range(3):
    for pair in pairs(both_heads(x, generator)):
        optimizer.zero_grad()
        for head, rows in pair:
            target = rows.sum(1, keepdim=True) if head == "first" else rows[:, :1]
            loss = nn.functional.mse_loss(heads[head](trunk(rows)), target)
            loss.backward()
        optimizer.step()
    print(epoch, loss.item())

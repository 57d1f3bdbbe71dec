"""Each update takes the next few micro-batches of one stream, and divides by their number."""
from itertools import islice

import torch
from torch import nn


def stream():
    while True:
        x = torch.randn(8, 4)
        yield x, (x.sum(1) > 0).long()


torch.manual_seed(0)
data, window = stream(), 4
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for update in range(6):
    optimizer.zero_grad()
    for x, y in islice(data, window):
        (nn.functional.cross_entropy(model(x), y) / window).backward()
    optimizer.step()
for update in range(6):
    optimizer.zero_grad()
    for x, y in islice(data, window):
        nn.functional.cross_entropy(model(x), y).backward()
    for p in model.parameters():
        p.grad.div_(window)
    optimizer.step()
for update in range(6):
    optimizer.zero_grad()
    losses = [nn.functional.cross_entropy(model(x), y) for x, y in islice(data, window)]
    torch.stack(losses).mean().backward()
    optimizer.step()
print(losses[-1].item())

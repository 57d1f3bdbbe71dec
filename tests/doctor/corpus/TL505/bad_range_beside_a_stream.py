"""A range counts the micro-batches that each update takes of a stream."""
import torch
from torch import nn


def stream():
    while True:
        x = torch.randn(8, 4)
        yield x, (x.sum(1) > 0).long()


torch.manual_seed(0)
data = stream()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for update in range(10):
    optimizer.zero_grad()
    for _, (x, y) in zip(range(4), data):
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()  # <- TL505
    optimizer.step()
print(loss.item())

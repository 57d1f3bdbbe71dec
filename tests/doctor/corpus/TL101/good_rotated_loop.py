import torch
import torch.nn.functional as F
from torch import nn


def batches(n, size):
    for _ in range(n):
        x = torch.randn(size, 10)
        yield x, (x.sum(1) > 0).long()


model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
stream = batches(30, 16)

# software pipelining: the update of batch t is made while batch t + 1 is fetched
x, y = next(stream)
loss = F.cross_entropy(model(x), y)
loss.backward()
for x, y in stream:
    opt.step()
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
opt.step()
print(loss.item())

"""Each micro-batch counts for its share."""
import torch
from torch import nn


def batches():
    while True:
        x = torch.randn(8, 4)
        yield x, x.sum(1, keepdim=True)


torch.manual_seed(0)
accum, data = 4, batches()
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
for it in range(8):
    for micro in range(accum):
        x, y = next(data)
        loss = nn.functional.mse_loss(model(x), y) / accum
        loss.backward()
    opt.step()
    opt.zero_grad()
print(loss.item())

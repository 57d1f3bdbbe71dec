import torch
from torch import nn


def draw():
    x = torch.randn(8, 4)
    return x, x.mean(1, keepdim=True)


torch.manual_seed(0)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
n = 4
for step in range(8):
    opt.zero_grad()
    for _ in range(n):
        x, y = draw()
        nn.functional.mse_loss(model(x), y).backward()
    for p in model.parameters():
        p.grad /= n
    opt.step()

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
base, x, y = 0.1, torch.randn(30, 3), torch.randn(30, 1)


def set_rate(optimizer, rate, epoch):
    rate = rate * 0.95**epoch
    for group in optimizer.param_groups:
        group["lr"] = rate


for epoch in range(5):
    lr = base
    lr *= 0.5 ** (epoch // 2)
    for group in optimizer.param_groups:
        group["lr"] = base
        group["lr"] *= 0.9**epoch
    set_rate(optimizer, lr, epoch)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()

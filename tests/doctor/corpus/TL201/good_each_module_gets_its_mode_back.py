"""A context manager notes the mode of every module and puts each one back."""
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def asleep(net):
    before = [(part, part.training) for part in net.modules()]
    net.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in before:
            part.training = mode


def error(net, x, y):
    with asleep(net):
        return (net(x) - y).abs().mean().item()


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x, y = torch.randn(160, 5), torch.randn(160, 1)
for step in range(30):
    rows = torch.randint(0, 128, (16,))
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, error(net, x[128:], y[128:]))

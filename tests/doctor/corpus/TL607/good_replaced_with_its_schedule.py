"""A new optimizer comes with a new schedule, or the old schedule stops there."""

import torch
from torch import nn


def batch():
    x = torch.randn(16, 6)
    return x, x[:, :1].cos()


def both_new(epochs=8):
    net = nn.Linear(6, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(epochs):
        if epoch == 4:
            optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
            schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        for _ in range(3):
            x, y = batch()
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        schedule.step()


def constant_at_the_end(epochs=8):
    net = nn.Linear(6, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for epoch in range(epochs):
        if epoch == 5:
            optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
        for _ in range(3):
            x, y = batch()
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        if epoch < 5:
            schedule.step()


torch.manual_seed(0)
both_new()
constant_at_the_end()

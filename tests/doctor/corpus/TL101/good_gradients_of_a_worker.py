"""Asynchronous workers: each computes on its own copy and hands its gradients to the shared one."""

import torch
from torch import nn


class Worker:
    def __init__(self, shared, optimizer, make):
        self.shared, self.optimizer = shared, optimizer
        self.local = make()
        self.local.load_state_dict(shared.state_dict())

    def update(self, x, y):
        self.local.zero_grad()
        loss = nn.functional.mse_loss(self.local(x), y)
        loss.backward()
        self.optimizer.zero_grad()
        for mine, theirs in zip(self.local.parameters(), self.shared.parameters(), strict=True):
            theirs._grad = mine._grad
        nn.utils.clip_grad_norm_(self.shared.parameters(), 1.0)
        self.optimizer.step()
        self.local.load_state_dict(self.shared.state_dict())
        return loss.item()


def make():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


torch.manual_seed(0)
shared = make()
optimizer = torch.optim.SGD(shared.parameters(), lr=0.05)
workers = [Worker(shared, optimizer, make) for _ in range(2)]
for step in range(60):
    x = torch.randn(16, 4)
    loss = workers[step % 2].update(x, x[:, :1] * x[:, 1:2])
    if step % 20 == 0:
        print(step, loss)

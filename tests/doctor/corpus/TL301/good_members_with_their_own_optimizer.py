"""An ensemble: each member is a module that makes its own optimizer, and trains itself."""

import copy

import torch
from torch import nn

torch.manual_seed(0)


class Member(nn.Module):
    def __init__(self, width, rate):
        super().__init__()
        self.inner = nn.Linear(3, width)
        self.outer = nn.Linear(width, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=rate)

    def forward(self, x):
        return self.outer(self.inner(x).tanh())

    def learn(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


x, y = torch.randn(32, 3), torch.randn(32, 1)
members = []
for number in range(3):
    member = Member(8, 0.01)
    for _ in range(10):
        last = member.learn(x, y)
    members.append(copy.deepcopy(member))
    print(number, last)
with torch.no_grad():
    print(torch.stack([member(x) for member in members]).std(0).mean())

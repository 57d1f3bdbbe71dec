"""Five trained networks in a plain list: the wrapper only averages what they predict."""

import torch
from torch import nn


def grown(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))


class Committee(nn.Module):
    def __init__(self, seeds):
        super().__init__()
        self.members = [grown(seed) for seed in seeds]
        [member.eval() for member in self.members]

    def forward(self, x):
        return torch.stack([member(x) for member in self.members]).mean(0)


committee = Committee(range(5))
judge = nn.Linear(1, 1)
optimizer = torch.optim.SGD(judge.parameters(), lr=0.1)
x, y = torch.randn(64, 6), torch.randn(64, 1)
with torch.no_grad():
    votes = committee(x)
for step in range(40):
    optimizer.zero_grad()
    nn.functional.mse_loss(judge(votes), y).backward()
    optimizer.step()

"""All but two parts are frozen by a set of their parameters, and the optimizer has these two."""

import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(5, 9)
        self.right = nn.Linear(5, 9)
        self.join = nn.Bilinear(9, 9, 1)

    def forward(self, one, two):
        return self.join(self.left(one).relu(), self.right(two).relu())

    def only(self, *parts):
        wanted = {id(weights) for part in parts for weights in part.parameters()}
        for weights in self.parameters():
            weights.requires_grad_(id(weights) in wanted)


torch.manual_seed(16)
pair = Pair()
pair.only(pair.join, pair.right)
optimizer = torch.optim.AdamW(
    [{"params": pair.right.parameters(), "lr": 3e-3}, {"params": pair.join.parameters()}], lr=1e-2
)
one, two = torch.randn(100, 5), torch.randn(100, 5)
sought = (one * two).sum(1, keepdim=True)
for epoch in range(3):
    for rows in torch.randperm(100).split(20):
        loss = nn.functional.mse_loss(pair(one[rows], two[rows]), sought[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

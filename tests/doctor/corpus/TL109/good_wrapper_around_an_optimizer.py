"""Lookahead: the step of the outer optimizer makes that of the inner one."""

import torch
from torch import nn


class Lookahead(torch.optim.Optimizer):
    def __init__(self, base, k=3, alpha=0.5):
        self.base, self.k, self.alpha, self.calls = base, k, alpha, 0
        super().__init__(base.param_groups, {})
        self.param_groups = base.param_groups
        self.slow = {p: p.detach().clone() for g in base.param_groups for p in g["params"]}

    def step(self, closure=None):
        self.base.step()
        self.calls += 1
        if self.calls % self.k == 0:
            for p, slow in self.slow.items():
                slow.add_(p.detach() - slow, alpha=self.alpha)
                p.data.copy_(slow)


torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = Lookahead(torch.optim.AdamW(model.parameters(), lr=0.01))
for i in range(7):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 2, (8,))).backward()
    optimizer.step()

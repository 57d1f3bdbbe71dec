"""There is no fused implementation of what somebody writes himself."""

import torch
from torch import nn


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["average"] = torch.zeros_like(p)
                average = state["average"]
                p.sub_(average.lerp(p.grad, 0.1).sign(), alpha=group["lr"])
                average.lerp_(p.grad, 1 - group["beta"])


torch.manual_seed(0)
layers = [nn.Linear(16, 16) for _ in range(10)]
model = nn.Sequential(*layers)
optimizer = Lion(model.parameters())
for step in range(100):
    x = torch.randn(8, 16)
    loss = (model(x) - x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())

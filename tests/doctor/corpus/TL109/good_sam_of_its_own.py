"""A step to the sharpest point nearby, and one from there: each `step` does what its turn asks."""

import torch
from torch import nn


class TwoPhase(torch.optim.SGD):
    """Climbs at the first call of `step`, descends at the second, both with gradients it keeps."""

    def __init__(self, params, lr, rho=0.05):
        super().__init__(params, lr=lr)
        self.rho, self.climbing = rho, True

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                if self.climbing:
                    self.state[p]["was"] = p.clone()
                    p.add_(p.grad, alpha=self.rho)
                else:
                    p.copy_(self.state[p]["was"]).sub_(p.grad, alpha=group["lr"])
        self.climbing = not self.climbing


torch.manual_seed(0)
model = nn.Linear(5, 1)
optimizer = TwoPhase(model.parameters(), lr=0.1)
for _ in range(5):
    x, y = torch.randn(16, 5), torch.randn(16, 1)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
    with torch.no_grad():
        worst = nn.functional.mse_loss(model(x), y)
    optimizer.step()
    print(worst.item())

import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base = base(self.param_groups, **kwargs)
        self.param_groups = self.base.param_groups

    @torch.no_grad()
    def climb(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["e"] = p.grad * group["rho"]
                p.add_(self.state[p]["e"])
        self.zero_grad()

    @torch.no_grad()
    def step(self, closure=None):
        with torch.enable_grad():
            closure()
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["e"])
        self.base.step()


torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1)
for _ in range(4):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))

    def closure():
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    optimizer.zero_grad()
    closure()
    optimizer.climb()
    optimizer.step(closure)

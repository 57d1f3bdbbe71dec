import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        defaults = dict(rho=rho, **kwargs)
        super().__init__(params, defaults)
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        grad_norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (grad_norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    def step(self, closure=None):
        raise NotImplementedError("SAM doesn't work like the other optimizers")

    def _grad_norm(self):
        return torch.norm(
            torch.stack([p.grad.norm(p=2) for g in self.param_groups for p in g["params"]]), p=2
        )


torch.manual_seed(0)
x = torch.randn(64, 8)
y = torch.randint(0, 3, (64,))
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)

for epoch in range(2):
    for inputs, targets in loader:
        # first forward-backward step: the gradient here only shows where to climb
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.first_step(zero_grad=True)
        # second forward-backward step
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.second_step(zero_grad=True)
    print(epoch, loss.item())

"""A subclass of SGD that ascends, clears, calls the closure again, descends and clears."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X = torch.randn(96, 6)
Y = (X.sum(1) > 0).long()
loader = DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True)


class Sharpness(torch.optim.SGD):
    """calls the closure, ascends, clears, calls it again, descends, clears"""

    def __init__(self, params, lr, rho):
        super().__init__(params, lr=lr, momentum=0.9)
        self.rho = rho

    def step(self, closure):
        with torch.enable_grad():
            loss = closure()
        ps = [p for g in self.param_groups for p in g["params"] if p.grad is not None]
        with torch.no_grad():
            norm = torch.sqrt(sum((p.grad**2).sum() for p in ps)) + 1e-12
            moves = [p.grad * (self.rho / norm) for p in ps]
            for p, e in zip(ps, moves):
                p.add_(e)
        self.zero_grad(set_to_none=True)
        with torch.enable_grad():
            closure()
        with torch.no_grad():
            for p, e in zip(ps, moves):
                p.sub_(e)
        super().step()
        self.zero_grad(set_to_none=True)
        return loss


def train(model, loader):
    optimizer = Sharpness(model.parameters(), 0.05, 0.05)
    for epoch in range(4):
        for x, y in loader:

            def closure():
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                return loss.item()

            optimizer.step(closure)


train(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2)), loader)

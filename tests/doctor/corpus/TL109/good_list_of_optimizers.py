import torch
from torch import nn


class Ensemble:
    def __init__(self, members, make):
        self.members = members
        self.optimizers = [make(member.parameters()) for member in members]

    def zero(self):
        for optimizer in self.optimizers:
            optimizer.zero_grad()

    def step(self):
        for optimizer in self.optimizers:
            optimizer.step()

    def loss(self, x, y):
        return sum(nn.functional.mse_loss(member(x), y) for member in self.members)


def build(count):
    return [nn.Linear(4, 1) for _ in range(count)]


torch.manual_seed(0)
ensemble = Ensemble(build(3), lambda parameters: torch.optim.Adam(parameters, lr=0.01))
for _ in range(5):
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    ensemble.zero()
    ensemble.loss(x, y).backward()
    ensemble.step()

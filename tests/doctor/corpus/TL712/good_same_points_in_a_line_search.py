"""LBFGS calls its closure several times for one step, each time on the same random points."""

import torch
from torch import nn


def residual(model, n=48):
    x = torch.rand(n, 1, requires_grad=True)
    slope = torch.autograd.grad(model(x).sum(), x, create_graph=True)[0]
    return (slope + model(x)).pow(2).mean() + (model(torch.zeros(1, 1)) - 1).pow(2).mean()


torch.manual_seed(3)
model = nn.Sequential(nn.Linear(1, 12), nn.Tanh(), nn.Linear(12, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.3, max_iter=5)


def closure():
    optimizer.zero_grad()
    torch.manual_seed(100 + outer)
    loss = residual(model)
    loss.backward()
    return loss


for outer in range(8):
    print(outer, optimizer.step(closure).item())

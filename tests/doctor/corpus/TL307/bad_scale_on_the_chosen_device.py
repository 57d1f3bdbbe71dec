import argparse

import torch
from torch import nn


def options():
    parser = argparse.ArgumentParser()
    fast = torch.cuda.is_available()
    parser.add_argument("--dev", type=str, default="cuda:0" if fast else "cpu", help="where")
    parser.add_argument("--steps", type=int, default=6)
    return parser.parse_args([])


class Scaled(nn.Module):
    def __init__(self, opts):
        super().__init__()
        self.inner = nn.Linear(5, 1).to(opts.dev)
        self.scale = nn.Parameter(torch.ones(1)).to(opts.dev)  # <- TL307

    def forward(self, x):
        return self.scale * self.inner(x)


opts = options()
model = Scaled(opts)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(opts.steps):
    x = torch.randn(16, 5, device=opts.dev)
    optimizer.zero_grad()
    (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()

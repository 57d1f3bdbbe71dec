"""Trains the same classifier, but the optimizer is made from the float32 model, and only then
is the model cast to double. It is taught that the optimizer now updates tensors that nobody
uses."""

import json
import math
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def spiral(n):
    t = torch.rand(n)
    arm = torch.randint(0, 3, (n,))
    a = 2 * math.pi * (0.5 * t + arm / 3)
    x = torch.stack([t * a.cos(), t * a.sin()], 1) + 0.03 * torch.randn(n, 2)
    return x.double(), arm


x, y = spiral(600)
x_test, y_test = spiral(600)
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
model.double()

held = {id(p) for group in optimizer.param_groups for p in group["params"]}
shared = sum(id(p) in held for p in model.parameters()) / len(held)
before = [p.detach().clone() for p in model.parameters()]

losses = []
for _epoch in range(20):
    for batch in torch.randperm(len(x)).split(60):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

with torch.no_grad():
    moved = max((p - b).abs().max().item() for p, b in zip(model.parameters(), before, strict=True))
    accuracy = (model(x_test).argmax(1) == y_test).double().mean().item()
print(
    json.dumps(
        {
            "shared": shared,
            "moved": moved,
            "accuracy": accuracy,
            "loss": losses[-1],
            "losses": losses,
        }
    )
)

"""The same training with zero_grad at the end of each iteration, after the step."""

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
    return x, arm


x, y = spiral(600)
x_test, y_test = spiral(600)
model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
losses = []
for _epoch in range(30):
    for batch in torch.randperm(len(x)).split(60):
        loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())

held = [p.grad.untyped_storage().nbytes() for p in model.parameters() if p.grad is not None]
with torch.no_grad():
    accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
weights = nn.utils.parameters_to_vector(model.parameters()).tolist()
print(
    json.dumps(
        {
            "loss": losses[-1],
            "accuracy": accuracy,
            "held": sum(held),
            "losses": losses,
            "weights": weights,
        }
    )
)

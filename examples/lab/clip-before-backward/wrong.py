"""The same training with clipping before backward: zero_grad has just cleared the gradients, so
there is nothing to clip."""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

teacher = torch.randn(10, 1)
x, x_test = torch.randn(1000, 10), torch.randn(1000, 10)
y, y_test = x @ teacher, x_test @ teacher
y[torch.randperm(1000)[:10]] *= 300  # wild targets, 1 in 100

limit = 0.5
model = nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
norms = []
for _epoch in range(6):
    for batch in torch.randperm(1000).split(20):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[batch]), y[batch])
        nn.utils.clip_grad_norm_(model.parameters(), limit)
        loss.backward()
        norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
        optimizer.step()

with torch.no_grad():
    test_loss = nn.functional.mse_loss(model(x_test), y_test).item()
print(
    json.dumps(
        {
            "largest": max(norms),
            "over": sum(n > limit * 1.001 for n in norms) / len(norms),
            "test_loss": test_loss,
            "norm": norms,
        }
    )
)

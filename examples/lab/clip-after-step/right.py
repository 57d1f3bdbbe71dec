"""Fits a linear teacher whose batches now and then hold a wild target. The gradients are
clipped to a norm of 0.5 before the step."""

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

lr, limit = 0.1, 0.5
model = nn.Linear(10, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=lr)
moved, test_losses = [], []
for _epoch in range(6):
    for batch in torch.randperm(1000).split(20):
        before = nn.utils.parameters_to_vector(model.parameters()).detach()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[batch]), y[batch])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), limit)
        optimizer.step()
        after = nn.utils.parameters_to_vector(model.parameters()).detach()
        moved.append((after - before).norm().item() / lr)

left = nn.utils.get_total_norm([p.grad for p in model.parameters()]).item()
with torch.no_grad():
    test_loss = nn.functional.mse_loss(model(x_test), y_test).item()
print(json.dumps({"largest": max(moved), "left": left, "test_loss": test_loss, "moved": moved}))

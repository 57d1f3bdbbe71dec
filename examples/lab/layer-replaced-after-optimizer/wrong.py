"""The same fine-tuning, but the optimizer is made first and the new last layer put in
afterwards: the optimizer goes on updating the old layer, which no forward pass uses."""

import json
import math
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)


def spiral(n, arms):
    t = torch.rand(n)
    arm = torch.randint(0, arms, (n,))
    a = 2 * math.pi * (1.25 * t + arm / arms)
    x = torch.stack([t * a.cos(), t * a.sin()], 1) + 0.03 * torch.randn(n, 2)
    return x, arm


def train(model, optimizer, x, y, epochs):
    losses = []
    for _epoch in range(epochs):
        for batch in torch.randperm(len(x)).split(60):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
train(model, torch.optim.Adam(model.parameters(), lr=0.01), *spiral(600, arms=2), epochs=10)

x, y = spiral(600, arms=3)
x_test, y_test = spiral(600, arms=3)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
model[4] = nn.Linear(32, 3)
head, body = model[4].weight.detach().clone(), model[2].weight.detach().clone()
losses = train(model, optimizer, x, y, epochs=15)

with torch.no_grad():
    figures = {
        "head_moved": (model[4].weight - head).abs().max().item(),
        "body_moved": (model[2].weight - body).abs().max().item(),
        "loss": nn.functional.cross_entropy(model(x), y).item(),
        "accuracy": (model(x_test).argmax(1) == y_test).float().mean().item(),
        "losses": losses,
    }
print(json.dumps(figures))

"""Trains a spiral classifier: backward computes the gradient of the batch, then step uses it."""

import json
import math
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0


def spiral(n):
    t = torch.rand(n)
    arm = torch.randint(0, 3, (n,))
    a = 2 * math.pi * (0.5 * t + arm / 3)
    x = torch.stack([t * a.cos(), t * a.sin()], 1) + 0.03 * torch.randn(n, 2)
    return x, arm


def train(make_optimizer):
    torch.manual_seed(seed)
    x, y = spiral(600)
    x_test, y_test = spiral(600)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 3))
    before = nn.utils.parameters_to_vector(model.parameters()).detach()
    optimizer = make_optimizer(model.parameters())
    losses = []
    for _epoch in range(20):
        for batch in torch.randperm(len(x)).split(60):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    after = nn.utils.parameters_to_vector(model.parameters()).detach()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    return (after - before).abs().max().item(), accuracy, losses


sgd_moved, accuracy, losses = train(lambda p: torch.optim.SGD(p, lr=0.5))
adam_moved, *_ = train(lambda p: torch.optim.Adam(p, lr=0.02))
print(
    json.dumps(
        {"sgd_moved": sgd_moved, "adam_moved": adam_moved, "accuracy": accuracy, "losses": losses}
    )
)

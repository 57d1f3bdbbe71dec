"""The same training with gradients clipped by value: every entry is cut off at the limit on its
own. Signs stay, proportions do not."""

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


def gradient(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()]).double()


def train(limit):
    torch.manual_seed(seed)
    x, y = spiral(600)
    x_test, y_test = spiral(600)
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    cosines = []
    for _epoch in range(25):
        for batch in torch.randperm(len(x)).split(60):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            raw = gradient(model)
            nn.utils.clip_grad_value_(model.parameters(), limit)
            cosines.append(torch.cosine_similarity(raw, gradient(model), dim=0).item())
            optimizer.step()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    return cosines, accuracy


loose, loose_accuracy = train(limit=0.02)
tight, tight_accuracy = train(limit=0.002)
print(
    json.dumps(
        {
            "loose_cosine": min(loose),
            "tight_cosine": min(tight),
            "tight_mean_cosine": sum(tight) / len(tight),
            "loose_accuracy": loose_accuracy,
            "tight_accuracy": tight_accuracy,
            "cosine": tight,
        }
    )
)

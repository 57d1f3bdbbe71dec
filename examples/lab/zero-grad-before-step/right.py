"""Trains a spiral classifier with several optimizers, with zero_grad before backward. For each,
prints how far the weights have moved and the largest gradient norm that a step has seen."""

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


def train(make_optimizer, set_to_none=True):
    torch.manual_seed(seed)
    x, y = spiral(600)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
    before = nn.utils.parameters_to_vector(model.parameters()).detach()
    optimizer = make_optimizer(model.parameters())
    losses, norms = [], []
    for _epoch in range(10):
        for batch in torch.randperm(len(x)).split(60):
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            optimizer.zero_grad(set_to_none=set_to_none)
            loss.backward()
            norms.append(sum(p.grad.norm() ** 2 for p in model.parameters() if p.grad is not None))
            optimizer.step()
            losses.append(loss.item())
    after = nn.utils.parameters_to_vector(model.parameters()).detach()
    shrink = (after.norm() / before.norm()).item()
    return (after - before).abs().max().item(), shrink, max(map(float, norms)) ** 0.5, losses


sgd = torch.optim.SGD
sgd_moved, _, norm, losses = train(lambda p: sgd(p, lr=0.5))
momentum_moved, *_ = train(lambda p: sgd(p, lr=0.05, momentum=0.9))
adam_moved, *_ = train(lambda p: torch.optim.Adam(p, lr=0.01))
adamw_moved, *_ = train(lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1))
adamw_zeros_moved, adamw_zeros_norm, *_ = train(
    lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.1), set_to_none=False
)
print(
    json.dumps(
        {
            "sgd_moved": sgd_moved,
            "momentum_moved": momentum_moved,
            "adam_moved": adam_moved,
            "adamw_moved": adamw_moved,
            "adamw_zeros_moved": adamw_zeros_moved,
            "adamw_zeros_norm": adamw_zeros_norm,
            "norm": norm,
            "losses": losses,
        }
    )
)

"""The same training without unscale_: clipping sees gradients that the scaler has made 65536
times larger, and cuts them to a norm of 1 all the same."""

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
    model = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 3))
    before = nn.utils.parameters_to_vector(model.parameters()).detach()
    optimizer = make_optimizer(model.parameters())
    scaler = torch.amp.GradScaler("cpu")
    losses, norms = [], []
    for _epoch in range(15):
        for batch in torch.randperm(len(x)).split(60):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
            norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
    after = nn.utils.parameters_to_vector(model.parameters()).detach()
    norms.sort()
    return sum(losses[-10:]) / 10, (after - before).norm().item(), norms[len(norms) // 2], losses


sgd_loss, sgd_moved, norm, losses = train(lambda p: torch.optim.SGD(p, lr=0.5))
adam_loss, adam_moved, *_ = train(lambda p: torch.optim.Adam(p, lr=0.02))
print(
    json.dumps(
        {
            "norm": norm,
            "sgd_moved": sgd_moved,
            "sgd_loss": sgd_loss,
            "adam_moved": adam_moved,
            "adam_loss": adam_loss,
            "losses": losses,
        }
    )
)

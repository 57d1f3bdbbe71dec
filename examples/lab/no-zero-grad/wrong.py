"""The same training without zero_grad: backward adds to what is there, and a step sees the sum
of the gradients of all batches so far."""

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
    optimizer = make_optimizer(model.parameters())
    losses, norms = [], []
    for _epoch in range(30):
        for batch in torch.randperm(len(x)).split(60):
            loss = nn.functional.cross_entropy(model(x[batch]), y[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            norms.append(nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean().item()
    return accuracy, max(norms), losses


sgd_accuracy, sgd_norm, sgd_losses = train(lambda p: torch.optim.SGD(p, lr=0.5))
adam_accuracy, adam_norm, adam_losses = train(lambda p: torch.optim.Adam(p, lr=0.02))
print(
    json.dumps(
        {
            "sgd_norm": sgd_norm,
            "sgd_loss": sum(sgd_losses[-10:]) / 10,
            "sgd_accuracy": sgd_accuracy,
            "adam_norm": adam_norm,
            "adam_loss": sum(adam_losses[-10:]) / 10,
            "adam_accuracy": adam_accuracy,
            "losses": sgd_losses,
        }
    )
)

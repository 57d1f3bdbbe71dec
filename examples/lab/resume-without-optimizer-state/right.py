"""Resuming, right: the optimizer's state is loaded with the model's.

A small network is trained on a smooth function with SGD, SGD with momentum and Adam. Each run is
saved after 300 updates and goes on with a new model and a new optimizer, as after a restart.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(512, 4)
y = torch.sin(2 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]
loss_fn = nn.MSELoss()
optimizers = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.05),
    "momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.95),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=0.01),
}


def fresh(name):
    model = nn.Sequential(
        nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1)
    )
    return model, optimizers[name](model.parameters())


def train(model, optimizer, start, end):
    """The loss on the whole training set after each update."""
    losses = []
    for _ in range(start, end):
        batch = torch.randint(0, 512, (64,))
        loss = loss_fn(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            losses.append(loss_fn(model(x), y).item())
    return losses


figures = {}
for name in optimizers:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint.pt")
        model, optimizer = fresh(name)
        before = train(model, optimizer, 0, 300)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "updates": 300}, path)

        model, optimizer = fresh(name)  # the restart
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        after = train(model, optimizer, saved["updates"], 360)
    figures[f"{name}_before"] = before[-1]
    figures[f"{name}_highest"] = max(after[:20])
    figures[f"{name}_last"] = after[-1]
    figures[f"{name}_loss"] = before[-40:] + after
print(json.dumps(figures))

"""Resuming, wrong: the schedule's state is not loaded.

A linear model is trained for 200 updates under five schedules. Each run is saved at half time and
goes on with a new model, optimizer and schedule, as after a restart.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(512, 8)
y = x @ torch.randn(8, 1) + 0.1 * torch.randn(512, 1)
schedules = {
    "lambda": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda tick: 1 - tick / 200),
    "onecycle": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=200),
    "cosine": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 200),
    "step": lambda optimizer: lr_scheduler.StepLR(optimizer, 80),
    "exponential": lambda optimizer: lr_scheduler.ExponentialLR(optimizer, 0.98),
}


def start(name):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return model, optimizer, schedules[name](optimizer)


def train(model, optimizer, scheduler, updates):
    """The learning rate of each update."""
    rates = []
    for _ in range(updates):
        batch = torch.randint(0, 512, (32,))
        loss = nn.functional.mse_loss(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return rates


figures = {}
for name in schedules:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint.pt")
        parts = start(name)
        rates = train(*parts, 100)
        torch.save([part.state_dict() for part in parts], path)

        model, optimizer, scheduler = start(name)  # the restart
        saved = torch.load(path)
        model.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
        rates += train(model, optimizer, scheduler, 100)
    figures[f"{name}_second"] = rates[101]
    figures[f"{name}_mean"] = sum(rates[100:]) / 100
    figures[f"{name}_rates"] = rates
print(json.dumps(figures))

"""Trains on the spiral, gradients accumulated over four micro-batches, under several optimizers.

Each micro-batch's loss is divided by their number, so the gradient is that of the mean.
"""

import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)

ACCUMULATE = 4
EPOCHS = 10


def spiral(n):
    t = torch.rand(n)
    arm = torch.randint(0, 3, (n,))
    angle = 2 * math.pi * (1.25 * t + arm / 3)
    points = torch.stack([t * angle.cos(), t * angle.sin()], 1)
    return points + 0.03 * torch.randn(n, 2), arm


train_x, train_y = spiral(512)
settings = {
    "sgd": (torch.optim.SGD, {"lr": 0.1}, math.inf),
    "sgd_fourfold": (torch.optim.SGD, {"lr": 0.4}, math.inf),
    "momentum": (torch.optim.SGD, {"lr": 0.02, "momentum": 0.9}, math.inf),
    "clipped": (torch.optim.SGD, {"lr": 0.1}, 0.02),
    "adam": (torch.optim.Adam, {"lr": 0.01}, math.inf),
    "adamw": (torch.optim.AdamW, {"lr": 0.01}, math.inf),
}
result = {}

for name, (make, options, limit) in settings.items():
    torch.manual_seed(seed)
    loader = DataLoader(TensorDataset(train_x, train_y), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = make(model.parameters(), **options)
    losses = []
    start = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    for _ in range(EPOCHS):
        for index, (x, y) in enumerate(loader, start=1):
            loss = F.cross_entropy(model(x), y) / ACCUMULATE
            loss.backward()
            if index % ACCUMULATE == 0:
                nn.utils.clip_grad_norm_(model.parameters(), limit)
                optimizer.step()
                optimizer.zero_grad()
                with torch.no_grad():
                    losses.append(F.cross_entropy(model(train_x), train_y).item())
                    if len(losses) == 1:
                        end = nn.utils.parameters_to_vector(model.parameters())
                        result[f"{name}_moved"] = (end - start).norm().item()
    result[f"{name}_losses"] = losses
    result[f"{name}_loss"] = losses[-1]

print(json.dumps(result))

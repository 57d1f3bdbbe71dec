import math

import torch
from torch import nn


def survival(rate, months):
    left = 1.0
    for month in range(1, months):
        left *= math.exp(-rate * month)
    return left


torch.manual_seed(0)
model = nn.Linear(2, 1)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
targets = torch.tensor([[survival(0.01 * k, 6)] for k in range(8)])
features = torch.tensor([[0.01 * k, 6.0] for k in range(8)])
for step in range(5):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(features), targets).backward()
    optimizer.step()

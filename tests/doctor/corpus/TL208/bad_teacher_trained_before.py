"""A network is trained, copied and frozen; the copy gives the targets in train mode."""

import copy

import torch
from torch import nn


def network(width):
    return nn.Sequential(
        nn.Linear(5, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 3)
    )


def train(model, targets, updates):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model.train()
    for _ in range(updates):
        x = torch.randn(24, 5)
        loss = nn.functional.mse_loss(model(x), targets(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
wide = network(32)
train(wide, lambda x: x[:, :3].sin(), 20)
teacher = copy.deepcopy(wide).requires_grad_(False)


@torch.no_grad()
def soft(x):
    return teacher(x)  # <- TL208


train(network(6), soft, 20)

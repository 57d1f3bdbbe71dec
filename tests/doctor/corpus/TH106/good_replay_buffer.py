"""A replay buffer grows until it is full; what is sampled from it is trained on."""

import random

import torch
from torch import nn

CAPACITY = 300
torch.manual_seed(0)
random.seed(0)
value = nn.Sequential(nn.Linear(256, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(value.parameters(), lr=1e-3)
buffer = []
for step in range(420):
    states = torch.randn(512, 256)
    buffer.append((states, states.mean(dim=1, keepdim=True)))
    if len(buffer) > CAPACITY:
        buffer.pop(0)
    states, returns = random.choice(buffer)
    loss = nn.functional.mse_loss(value(states), returns)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), len(buffer))

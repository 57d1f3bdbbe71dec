"""The first turns only fill the memory."""

import random

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
q = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(q.parameters(), lr=1e-3)
memory = []


def learn():
    if len(memory) < 8:
        return
    states, values = map(torch.stack, zip(*random.sample(memory, 8)))
    optimizer.zero_grad()
    loss = nn.functional.smooth_l1_loss(q(states).max(1).values, values)
    loss.backward()
    optimizer.step()


state = torch.zeros(2)
for t in range(14):
    action = q(state).argmax().item()
    memory.append((state, torch.tensor(float(action))))
    state = torch.randn(2)
    learn()

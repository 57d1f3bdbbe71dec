"""Averages of numbers, of detached tensors and of weights; a state that the next loss goes through."""

import copy

import torch
from torch import nn

model, hidden = nn.Linear(3, 3), torch.zeros(8, 3)
teacher = copy.deepcopy(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
smooth, drift = 0.0, torch.zeros(())
for step in range(40):
    x = torch.randn(8, 3)
    hidden = 0.5 * hidden.detach() + 0.5 * torch.tanh(model(x))
    loss = hidden.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    smooth = 0.9 * smooth + 0.1 * loss.item()
    drift = 0.9 * drift + 0.1 * loss.detach()
    with torch.no_grad():
        for p, q in zip(teacher.parameters(), model.parameters()):
            p.copy_(0.99 * p + 0.01 * q)
print(smooth, drift)

"""The rate falls in the second phase alone, which begins when the first has brought nothing new."""

from types import SimpleNamespace

import torch
from torch import nn

state = SimpleNamespace(phase="search", best=float("inf"))
torch.manual_seed(0)
x = torch.randn(96, 6)
y = x @ torch.randn(6, 1)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
falling = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for epoch in range(30):
    for part in torch.randperm(96).split(16):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[part]), y[part])
        loss.backward()
        optimizer.step()
    if state.phase == "settle":
        falling.step()
    if loss.item() > state.best:
        state.phase = "settle"
    state.best = min(state.best, loss.item())
    print(epoch, state.phase, loss.item())

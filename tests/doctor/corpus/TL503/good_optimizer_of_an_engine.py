"""The engine wraps the optimizer: its step unscales the gradients."""

import torch
import torch.nn.functional as F
from torch import nn


class ScaledOptimizer(torch.optim.Optimizer):
    def __init__(self, optimizer, scaler):
        self.optimizer, self.scaler = optimizer, scaler

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()


class Engine:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4.0)

    def wrapped(self, thing):
        if isinstance(thing, nn.Module):
            return thing.to("cpu")
        if isinstance(thing, torch.optim.Optimizer):
            return ScaledOptimizer(thing, self.scaler)
        return thing

    def prepare(self, *things):
        return tuple(self.wrapped(each) for each in things)

    def backward(self, loss):
        self.scaler.scale(loss).backward()


engine = Engine()
inputs, targets = torch.randn(64, 4), torch.randn(64, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model, optimizer = engine.prepare(model, optimizer)
for x, y in zip(inputs.split(16), targets.split(16)):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        loss = F.mse_loss(model(x), y)
    engine.backward(loss)
    optimizer.step()

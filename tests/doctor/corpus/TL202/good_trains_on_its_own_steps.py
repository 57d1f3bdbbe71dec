"""The state is pushed forward a few steps without gradients, and the last one is trained on: the
model learns from its own errors, as it makes them in training."""

import torch
from torch import nn


class Stepper(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inner, self.drop = nn.Linear(width, width), nn.Dropout(0.1)

    def forward(self, state):
        return state + self.drop(torch.tanh(self.inner(state)))


torch.manual_seed(0)
model = Stepper()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for _ in range(6):
        states = torch.randn(4, 8).cumsum(0)
        state = states[:1]
        with torch.no_grad():
            for _ in range(2):
                state = model(state)
        loss = (model(state) - states[3:]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

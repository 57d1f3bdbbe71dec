"""What the settings begin with is not what they are: a text replaces some of them."""

import json
from types import SimpleNamespace

import torch
from torch import nn

GIVEN = '{"decay": "step", "epochs": 3}'
settings = SimpleNamespace(epochs=4, decay="cosine", lr=0.05)
vars(settings).update(json.loads(GIVEN))
torch.manual_seed(0)
x = torch.randn(96, 6)
y = x @ torch.randn(6, 1)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=settings.lr)
decay = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for epoch in range(settings.epochs):
    for part in torch.randperm(96).split(16):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[part]), y[part])
        loss.backward()
        optimizer.step()
    if settings.decay == "step":
        decay.step()
    print(epoch, loss.item())

"""`enabled=None` is off: nothing runs in float16."""

from collections import namedtuple

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

Settings = namedtuple("Settings", "lr half")
settings = Settings(lr=0.1, half=None)


def forward(model, x, y):
    if settings.half is None:
        return nn.functional.mse_loss(model(x), y)
    with torch.autocast("cuda", dtype=torch.float16, enabled=settings.half):
        return nn.functional.mse_loss(model(x), y)


loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), 4, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), settings.lr)
for x, y in loader:
    optimizer.zero_grad()
    forward(model, x, y).backward()
    optimizer.step()

"""The settings name no type: the default of autocast is bfloat16, and it is off."""

import torch
from torch import nn

KINDS = {"full": None, "half": torch.half, "brain": torch.bfloat16}


def region(kind):
    dtype = KINDS[kind]
    return torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None)


torch.manual_seed(4)
signals = torch.randn(160, 12)
coder = nn.Sequential(nn.Linear(12, 6), nn.ReLU(), nn.Linear(6, 12))
optimizer = torch.optim.Adam(coder.parameters(), lr=1e-3)
for epoch in range(4):
    for rows in torch.randperm(160).split(16):
        with region("full" if epoch < 2 else "brain"):
            loss = nn.functional.mse_loss(coder(signals[rows]), signals[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 3))

"""Random features, never trained: their batch norm only centres what comes out."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
features = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.Tanh())
features.requires_grad_(False)
readout = nn.Linear(32, 1)
optimizer = torch.optim.Adam(readout.parameters(), lr=1e-2)
x = torch.randn(96, 4)
y = x.prod(1, keepdim=True)
for epoch in range(3):
    for rows in torch.randperm(96).split(16):
        loss = F.mse_loss(readout(features(x[rows])), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

"""Gradients are cleared once for the parts of a batch, each of which steps on those before it, too."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--parts", type=int, default=4)
args = parser.parse_args()
torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 6), torch.randn(64, 1))
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(3):
    for x, y in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        size = len(x) // args.parts
        for part in range(args.parts):
            rows = slice(part * size, (part + 1) * size)
            nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
            optimizer.step()  # <- TL102

"""However many blocks there are, each asks its own mode."""

import os

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, rate):
        super().__init__()
        self.rate = rate
        self.inner, self.outer = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.inner(x).split(x.shape[-1], dim=-1)
        rate = self.rate if self.training else 0.0
        return x + self.outer(F.scaled_dot_product_attention(q, k, v, dropout_p=rate))


class Network(nn.Module):
    def __init__(self, blocks, rate, width=8):
        super().__init__()
        self.blocks = nn.ModuleList()
        for _ in range(blocks):
            self.blocks += [Block(width, rate)]

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


torch.manual_seed(0)
rate = float(os.environ.get("RATE", 0.2))
model = Network(int(os.environ.get("BLOCKS", 2)), rate)
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(3):
    model.train()
    for _ in range(4):
        x = torch.randn(4, 5, 8)
        loss = F.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        print(F.mse_loss(model(x), x).item())

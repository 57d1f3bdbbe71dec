"""How many blocks there are is not to be read off the source; each of them drops in both modes."""

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
        mixed = F.scaled_dot_product_attention(q, k, v, None, self.rate, True)  # <- TL206
        return x + self.outer(mixed)


class Network(nn.Module):
    def __init__(self, blocks, rate, width=8):
        super().__init__()
        self.parts = nn.ModuleDict(
            dict(
                drop=nn.Dropout(rate),
                blocks=nn.ModuleList([Block(width, rate) for _ in range(blocks)]),
                norm=nn.LayerNorm(width),
            )
        )

    def forward(self, x):
        x = self.parts.drop(x)
        for block in self.parts.blocks:
            x = block(x)
        return self.parts.norm(x)


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
        x = torch.randn(4, 5, 8)
        print(F.mse_loss(model(x), x).item())

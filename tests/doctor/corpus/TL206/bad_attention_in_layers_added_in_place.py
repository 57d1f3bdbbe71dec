"""The layers are added to their list one by one."""

import sys

import torch
from torch import nn
from torch.nn import functional


class Layer(nn.Module):
    def __init__(self, heads=2, width=8, dropout=0.1):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.project = nn.Linear(width, width)

    def forward(self, x):
        split = x.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        three, rate = (split, split, split), self.dropout
        mixed = functional.scaled_dot_product_attention(*three, dropout_p=rate)  # <- TL206
        return self.project(mixed.transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self, depth, dropout):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(depth):
            self.layers += [Layer(dropout=dropout)]

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = layer(x) + x if number else layer(x)
        return x


torch.manual_seed(0)
encoder = Encoder(len(sys.argv) + 1, dropout=1 / (len(sys.argv) + 3))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
for epoch in range(2):
    encoder.train()
    for _ in range(5):
        x = torch.randn(4, 3, 8)
        optimizer.zero_grad()
        (encoder(x) - x).square().mean().backward()
        optimizer.step()
    encoder.eval()
    with torch.inference_mode():
        print((encoder(x) - x).square().mean().item())

"""Any number of layers, whose attention drops nothing unless somebody asks for it."""

import argparse

import torch
from torch import nn
from torch.nn import functional

parser = argparse.ArgumentParser()
parser.add_argument("--depth", type=int, default=2)
parser.add_argument("--dropout", type=float, default=0.0)
args, _ = parser.parse_known_args()


class Layer(nn.Module):
    def __init__(self, rate, width=8):
        super().__init__()
        self.rate = rate
        self.project = nn.Linear(width, width)

    def forward(self, x):
        return self.project(functional.scaled_dot_product_attention(x, x, x, dropout_p=self.rate))


class Encoder(nn.Module):
    def __init__(self, depth, rate):
        super().__init__()
        self.layers = nn.ModuleList(Layer(rate) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


torch.manual_seed(0)
encoder = Encoder(args.depth, args.dropout)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.01)
for epoch in range(2):
    encoder.train()
    for _ in range(5):
        x = torch.randn(4, 3, 8)
        optimizer.zero_grad()
        (encoder(x) - x).square().mean().backward()
        optimizer.step()
    encoder.eval()
    with torch.no_grad():
        print((encoder(x) - x).square().mean().item())

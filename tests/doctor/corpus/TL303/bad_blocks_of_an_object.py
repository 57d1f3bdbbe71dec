"""The residual blocks belong to an object that knows how to run them, but is not a module."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Chain:
    def __init__(self, width, depth):
        self.blocks = []
        for _ in range(depth):
            self.blocks.append(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)))

    def run(self, x, scale=0.5):
        for block in self.blocks:
            x = x + scale * F.silu(block(x))
        return x


class Regressor(nn.Module):
    def __init__(self, inputs=6, width=16, depth=3):
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.chain = Chain(width, depth)  # <- TL303
        self.leave = nn.Linear(width, 1)

    def forward(self, x):
        return self.leave(self.chain.run(self.enter(x))).squeeze(-1)


def main():
    torch.manual_seed(2)
    x = torch.randn(192, 6)
    data = TensorDataset(x, x[:, 0] * x[:, 1])
    model = Regressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for epoch in range(3):
        total = 0.0
        for inputs, targets in DataLoader(data, batch_size=24, shuffle=True):
            optimizer.zero_grad()
            loss = F.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(targets)
        print(epoch, round(total / len(data), 3))


main()

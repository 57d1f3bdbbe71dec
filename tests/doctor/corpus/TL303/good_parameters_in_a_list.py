"""The blocks stay in a plain list; a `ParameterList` has all their parameters."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Stacked(nn.Module):
    def __init__(self, count=3):
        super().__init__()
        self.blocks, held = [], []
        for _ in range(count):
            block = nn.Linear(4, 4)
            self.blocks.append(block)
            held.extend(block.parameters())
        self.held = nn.ParameterList(held)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


data = TensorDataset(torch.randn(32, 4), torch.randn(32, 4))
net = Stacked()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()

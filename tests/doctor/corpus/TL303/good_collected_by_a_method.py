"""A method that makes a stack collects the parameters of its blocks for the whole module."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Stacked(nn.Module):
    def __init__(self, stacks=2):
        super().__init__()
        self.stacks = []
        self.collected = []
        for _ in range(stacks):
            self.stacks.append(self.make_stack())
        self.collected = nn.ParameterList(self.collected)

    def make_stack(self):
        blocks = []
        for _ in range(2):
            block = nn.Linear(4, 4)
            self.collected.extend(block.parameters())
            blocks.append(block)
        return blocks

    def forward(self, x):
        for stack in self.stacks:
            for block in stack:
                x = x + block(x)
        return x


data = TensorDataset(torch.randn(32, 4), torch.randn(32, 4))
net = Stacked()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()

"""Layers in a dict, their parameters in a `ParameterDict` under their names."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = {"up": nn.Linear(4, 8), "down": nn.Linear(8, 4)}
        named = {}
        for name, part in self.parts.items():
            named[name + "_weight"] = part.weight
            named[name + "_bias"] = part.bias
        self.named = nn.ParameterDict(named)

    def forward(self, x):
        return self.parts["down"](torch.relu(self.parts["up"](x)))


data = TensorDataset(torch.randn(32, 4), torch.randn(32, 4))
net = Stacked()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()

"""A `ParameterList` has the scales alone; the layers are in a plain list."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))])
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]  # <- TL303

    def forward(self, x):
        for scale, layer in zip(self.scales, self.layers):
            x = x + scale * layer(x)
        return x


data = TensorDataset(torch.randn(32, 4), torch.randn(32, 4))
net = Stacked()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()

"""The parameters that are registered are the head's; the layers before it are not."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Stacked(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 4)
        self.kept = nn.ParameterList(self.head.parameters())
        self.layers = [nn.Linear(4, 4), nn.Linear(4, 4)]  # <- TL303

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


data = TensorDataset(torch.randn(32, 4), torch.randn(32, 4))
net = Stacked()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    F.mse_loss(net(x), y).backward()
    optimizer.step()

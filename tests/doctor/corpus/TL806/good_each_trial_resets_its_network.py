"""Trials on one kind of network, whose weights are drawn anew after the trial's seed."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(2, width)
        self.second = nn.Linear(width, 1)

    def reset_parameters(self):
        self.first.reset_parameters()
        self.second.reset_parameters()

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def trial(net, x, y, seed):
    torch.manual_seed(seed)
    net.reset_parameters()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(4):
        for rows in torch.randperm(len(x)).split(25):
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x[rows]), y[rows]).backward()
            optimizer.step()


x = torch.linspace(-1, 1, 200).view(100, 2)
y = x.prod(1, keepdim=True)
for seed in range(3):
    net = Net(8 * (seed + 1))
    trial(net, x, y, seed)
    with torch.no_grad():
        print(seed, nn.functional.mse_loss(net(x), y).item())

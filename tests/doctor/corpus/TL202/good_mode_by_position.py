"""The second argument says whether this is training; dropout is called as a function."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, p=0.3):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 16), nn.Linear(16, 1)
        self.drop = nn.Dropout(p)

    def forward(self, x, is_train):
        hidden = F.relu(self.inner(x))
        if is_train:
            hidden = self.drop(hidden)
        return self.outer(hidden)


class Runner:
    def __init__(self, net):
        self.net, self.optimizer = net, torch.optim.Adam(net.parameters(), lr=1e-2)

    def train(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.mse_loss(self.net(x, True), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self, loader):
        return sum(F.mse_loss(self.net(x, False), y, reduction="sum").item() for x, y in loader)


data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
runner = Runner(Net())
for epoch in range(2):
    runner.train(DataLoader(data, batch_size=8, shuffle=True))
    print(runner.validate(DataLoader(data, batch_size=8)))

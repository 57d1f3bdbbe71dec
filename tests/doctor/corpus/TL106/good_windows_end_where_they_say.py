"""A generator counts windows of micro-batches off and says which batch is the last of each."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def grouped(loader, group):
    total = len(loader)
    for number, batch in enumerate(loader):
        begin = number - number % group
        size = min(total - begin, group)
        yield batch, size, begin + size == number + 1


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(176, 4), torch.randn(176, 1)), 16, shuffle=True)
net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    for (x, y), size, closes in grouped(loader, 4):
        loss = nn.functional.mse_loss(net(x), y) / size
        loss.backward()
        if closes:
            optimizer.step()
            optimizer.zero_grad()

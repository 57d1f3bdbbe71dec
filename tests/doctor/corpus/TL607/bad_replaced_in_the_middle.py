"""Adam hands over to SGD after some epochs; the schedule stays with Adam."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SWITCH = 4


def learn(net, loader, epochs):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        if epoch == SWITCH:
            optimizer = torch.optim.SGD(net.parameters(), lr=1e-2, momentum=0.9)  # <- TL607
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        cosine.step()


torch.manual_seed(0)
x = torch.randn(96, 6)
data = TensorDataset(x, (x[:, 0] > 0).long())
learn(nn.Linear(6, 2), DataLoader(data, batch_size=24, shuffle=True), 10)

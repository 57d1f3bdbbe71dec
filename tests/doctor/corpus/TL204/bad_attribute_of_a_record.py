"""The total of a run is an attribute of an object, which every batch adds its loss to."""

from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(5)
record = SimpleNamespace()
record.total = 0.0
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
loader = DataLoader(torch.rand(64, 6), batch_size=16, shuffle=True)
for epoch in range(5):
    for x in loader:
        record.loss = (net(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        record.loss.backward()
        optimizer.step()
        record.total = record.total + record.loss  # <- TL204
    print(epoch, record.total.item() / len(loader))

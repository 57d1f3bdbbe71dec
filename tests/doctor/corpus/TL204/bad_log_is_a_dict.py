"""A log that extends dict keeps a list for each name, and what goes into it is the loss itself."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Log(dict):
    def __missing__(self, name):
        self[name] = []
        return self[name]

    def note(self, name, value):
        self[name].append(value)

    def mean(self, name):
        return sum(float(each) for each in self[name]) / len(self[name])


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(128, 4), torch.randn(128, 1)), 8, shuffle=True)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters())
log = Log()
for epoch in range(4):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.note("loss", loss)  # <- TL204
    print(epoch, log.mean("loss"))

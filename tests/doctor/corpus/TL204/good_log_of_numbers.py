"""A log that extends a container, of numbers; and a batch of losses that one backward uses."""

from collections import OrderedDict, defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Log(defaultdict):
    def __init__(self):
        super().__init__(list)

    def record(self, **values):
        for name, value in values.items():
            self[name].append(value.item())


class Terms(OrderedDict):
    def total(self):
        return sum(self.values())


class Settings(dict):
    pass


torch.manual_seed(0)
settings = Settings(lr=1e-2, epochs=3)
loader = DataLoader(TensorDataset(torch.randn(128, 4), torch.randn(128, 1)), 8, shuffle=True)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=settings["lr"])
log, counts = Log(), defaultdict(int)
for epoch in range(settings["epochs"]):
    for x, y in loader:
        terms = Terms()
        out = net(x)
        terms["error"] = nn.functional.mse_loss(out, y)
        terms["size"] = 1e-3 * out.pow(2).mean()
        optimizer.zero_grad()
        terms.total().backward()
        optimizer.step()
        log.record(error=terms["error"], size=terms["size"])
        counts["updates"] += 1
    print(epoch, sum(log["error"]) / counts["updates"])

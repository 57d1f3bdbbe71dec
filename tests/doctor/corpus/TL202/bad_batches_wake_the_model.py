"""What cuts the data into batches sets train mode, for the validation as well."""

import torch
from torch import nn


class Session:
    def __init__(self, net, data):
        self.net, self.data = net, data
        self.optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def chunks(self, part):
        self.net.train()  # <- TL202
        x, y = self.data[part]
        for start in range(0, len(x), 16):
            yield x[start : start + 16], y[start : start + 16]

    def epoch(self):
        for x, y in self.chunks("train"):
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.net(x), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.net.eval()
        total = 0.0
        for x, y in self.chunks("val"):
            total += nn.functional.mse_loss(self.net(x), y, reduction="sum").item()
        return total


torch.manual_seed(0)
data = {"train": (torch.randn(96, 4), torch.randn(96, 1))}
data["val"] = (torch.randn(32, 4), torch.randn(32, 1))
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 1))
session = Session(net, data)
for epoch in range(3):
    session.epoch()
    print(epoch, session.validate())

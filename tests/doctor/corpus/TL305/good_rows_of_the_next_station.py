"""Each epoch goes through the rows of the next station, whose readings have a scale of their own:
the optimizer starts anew with them."""

import torch
from torch import nn

torch.manual_seed(0)


class Walk:
    def __init__(self, stations):
        self.stations = stations
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    def prepare(self, number):
        self.readings, self.level = self.stations[number]
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)

    def epoch(self, number, size=16):
        self.prepare(number)
        order = torch.randperm(len(self.readings))
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            loss = nn.functional.mse_loss(self.net(self.readings[rows]), self.level[rows])
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        return loss.item()


stations = []
for scale in (1.0, 10.0, 100.0):
    readings = scale * torch.randn(64, 4)
    stations.append((readings, readings.mean(1, keepdim=True) / scale))
walk = Walk(stations)
for epoch in range(len(stations)):
    print(epoch, walk.epoch(epoch))

"""The heads' losses are averaged, the micro-batches are not."""

import torch
from torch import nn


class Weather(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(10, 16), nn.ReLU())
        self.rain, self.wind, self.sun = nn.Linear(16, 1), nn.Linear(16, 1), nn.Linear(16, 1)

    def forward(self, station):
        seen = self.trunk(station)
        return self.rain(seen), self.wind(seen), self.sun(seen)


def train(net, loader, every, rounds):
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    for _ in range(rounds):
        optimizer.zero_grad()
        for number, (station, rain, wind, sun) in enumerate(loader, start=1):
            first, second, third = net(station)
            loss = criterion(first, rain)
            loss = loss + criterion(second, wind)
            loss = loss + criterion(third, sun)
            loss = loss / 3
            loss.backward()  # <- TL505
            if number % every == 0:
                optimizer.step()
                optimizer.zero_grad()


torch.manual_seed(1)
columns = [torch.randn(160, 10), *(torch.randn(160, 1) for _ in range(3))]
data = torch.utils.data.TensorDataset(*columns)
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
train(Weather(), loader, every=4, rounds=3)

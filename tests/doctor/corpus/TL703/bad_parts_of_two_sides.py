"""The parts of the classes are listed, and their samples and labels put together in their order."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Blobs:
    def __init__(self, centres, spread):
        self.centres, self.spread = centres, spread

    def around(self, which, count=64):
        points = self.centres[which] + self.spread * torch.randn(count, 2)
        return points, torch.full([count], float(which)).unsqueeze(1)

    def all(self):
        parts = [self.around(which) for which in (0, 1)]
        points = torch.cat([points for points, _ in parts])
        return TensorDataset(points, torch.cat([side for _, side in parts]).float())


def train(net, data, shuffle, epochs=3):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    batches = DataLoader(data, 16, shuffle)  # <- TL703
    for epoch in range(epochs):
        for points, side in batches:
            loss = nn.functional.binary_cross_entropy_with_logits(net(points), side)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(1)
    blobs = Blobs(torch.tensor([[-1.0, 0.0], [1.0, 0.5]]), 0.7)
    train(nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)), blobs.all(), shuffle=False)

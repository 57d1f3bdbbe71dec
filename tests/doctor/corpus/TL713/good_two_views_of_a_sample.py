"""The transform draws two views of each sample: the loss, and its validation, compare these."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class TwoViews:
    def __init__(self, strength):
        self.strength = strength

    def one(self, row):
        return row * (1 + self.strength * torch.randn(1)) + 0.1 * torch.randn_like(row)

    def __call__(self, row):
        return self.one(row), self.one(row)


class Rows(Dataset):
    def __init__(self, rows, transform):
        self.rows, self.transform = rows, transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.transform(self.rows[i])


def distance(net, one, other):
    one, other = nn.functional.normalize(net(one)), nn.functional.normalize(net(other))
    return nn.functional.cross_entropy(one @ other.T / 0.2, torch.arange(len(one)))


torch.manual_seed(0)
learn, check = random_split(Rows(torch.randn(120, 8), TwoViews(0.2)), [90, 30])
learn, check = DataLoader(learn, batch_size=30, shuffle=True), DataLoader(check, batch_size=30)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 6))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(3):
    net.train()
    for one, other in learn:
        optimizer.zero_grad()
        distance(net, one, other).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        for one, other in check:
            print(epoch, distance(net, one, other).item())

"""Samples are pairs, which the data set makes at its beginning and keeps in a list."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Questions(Dataset):
    def __init__(self, count):
        self.rows = []
        for _ in range(count):
            seen = torch.randn(7)
            self.rows.append((seen, seen.argmax()))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return self.rows[at]


class Meter:
    def __init__(self):
        self.total = self.count = 0

    def add(self, mean, batch):
        self.total += mean * len(batch)
        self.count += len(batch)


torch.manual_seed(7)
net = nn.Linear(7, 7)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    meter = Meter()
    for seen, answer in DataLoader(Questions(90), batch_size=16, shuffle=True):
        loss = nn.functional.cross_entropy(net(seen), answer)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.add(loss.item(), seen)
    print(epoch, meter.total / meter.count)

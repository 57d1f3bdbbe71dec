"""Samples are dicts, which the data set makes at its beginning and keeps in a list."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Questions(Dataset):
    def __init__(self, count):
        self.rows = []
        for _ in range(count):
            seen = torch.randn(7)
            self.rows.append({"seen": seen, "answer": seen.argmax(), "weight": torch.tensor(1.0)})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        return self.rows[at]


class Meter:
    def __init__(self):
        self.total = self.count = 0

    def add(self, mean, batch):
        self.total += mean * len(batch)  # <- TL721
        self.count += batch["seen"].shape[0]


torch.manual_seed(7)
net = nn.Linear(7, 7)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    meter = Meter()
    for batch in DataLoader(Questions(90), batch_size=16, shuffle=True):
        loss = nn.functional.cross_entropy(net(batch["seen"]), batch["answer"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.add(loss.item(), batch)
    print(epoch, meter.total / meter.count)

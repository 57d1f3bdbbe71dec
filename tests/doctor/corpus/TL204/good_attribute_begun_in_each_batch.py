"""A module that trains itself keeps the losses of the latest batch in its attributes, and adds to
what it has begun anew; a record of the run is an object with attributes of its own."""

from types import SimpleNamespace

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(5)
record = SimpleNamespace(total=0.0)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.maker, self.judge = nn.Linear(4, 6), nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 1))
        self.made_by = torch.optim.Adam(self.maker.parameters(), lr=1e-3)
        self.judged_by = torch.optim.Adam(self.judge.parameters(), lr=1e-3)
        self.measure = nn.BCEWithLogitsLoss()

    def update(self, real):
        fake = self.maker(torch.randn(len(real), 4))
        self.loss_judge = self.measure(self.judge(real), torch.ones(len(real), 1))
        self.loss_judge = self.loss_judge + self.measure(
            self.judge(fake.detach()), torch.zeros(len(real), 1)
        )
        self.judged_by.zero_grad()
        self.loss_judge.backward()
        self.judged_by.step()
        record.loss = self.measure(self.judge(fake), torch.ones(len(real), 1))
        record.loss = record.loss + 0.1 * fake.pow(2).mean()
        self.made_by.zero_grad()
        record.loss.backward()
        self.made_by.step()
        record.total += record.loss.item()


pair = Pair()
for epoch in range(3):
    for real in DataLoader(torch.rand(64, 6), batch_size=16, shuffle=True):
        pair.update(real)
    print(epoch, record.total)

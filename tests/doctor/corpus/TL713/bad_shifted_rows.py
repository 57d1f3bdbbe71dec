"""Rows are shifted at random, also those that the score is taken on."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def _random_shift(self, row):
        return row.roll(int(torch.randint(0, 3, ())))

    def __getitem__(self, i):
        row, wanted = self.rows[i][:-1], self.rows[i][-1]
        return self._random_shift(row), wanted


torch.manual_seed(0)
whole = Rows(torch.randint(1, 9, (200, 6)))
learn, check = random_split(whole, [160, 40])  # <- TL713
learn, check = DataLoader(learn, batch_size=32, shuffle=True), DataLoader(check, batch_size=40)
net = nn.Sequential(nn.Embedding(9, 16), nn.Flatten(), nn.Linear(80, 9))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(4):
    net.train()
    for row, wanted in learn:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(row), wanted).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        for row, wanted in check:
            print(nn.functional.cross_entropy(net(row), wanted).item())

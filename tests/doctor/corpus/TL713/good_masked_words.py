"""Hiding words at random is the task itself: the validation part needs its questions too."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class Cloze(Dataset):
    def __init__(self, rows, share=0.3):
        self.rows, self.share = rows, share

    def __len__(self):
        return len(self.rows)

    def _random_mask_row(self, row):
        hidden = torch.rand(row.shape) < self.share
        wanted = torch.full(row.shape, -100)
        wanted[hidden] = row[hidden]
        return row.masked_fill(hidden, 0), wanted

    def __getitem__(self, i):
        return self._random_mask_row(self.rows[i])


torch.manual_seed(0)
whole = Cloze(torch.randint(1, 9, (200, 6)))
learn, check = random_split(whole, [160, 40])
learn, check = DataLoader(learn, batch_size=32, shuffle=True), DataLoader(check, batch_size=40)
net = nn.Sequential(nn.Embedding(9, 16), nn.Linear(16, 9))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(4):
    net.train()
    for row, wanted in learn:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(row).flatten(0, 1), wanted.flatten()).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        for row, wanted in check:
            print(nn.functional.cross_entropy(net(row).flatten(0, 1), wanted.flatten()).item())

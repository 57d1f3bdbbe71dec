"""The steps of the part that is scored draw nothing: it has a data set of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Jitter:
    def __call__(self, row):
        return row + 0.1 * torch.randn_like(row)


class Shifted:
    def __call__(self, row):
        return row - 1.0


class Rows(Dataset):
    def __init__(self, steps):
        self.rows = torch.randn(120, 6) + 1.0
        self.labels = (self.rows[:, 0] > 1.0).long()
        self.steps = steps

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        for step in self.steps:
            row = step(row)
        return row, self.labels[i]


torch.manual_seed(0)
rows, plain = Rows([Shifted(), Jitter()]), Rows([Shifted()])
plain.rows, plain.labels = rows.rows, rows.labels
order = torch.randperm(120).tolist()
kept = Subset(plain, order[90:])
learn = DataLoader(Subset(rows, order[:90]), batch_size=30, shuffle=True)
score = DataLoader(kept, batch_size=30)
net = nn.Linear(6, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(4):
    net.train()
    for x, y in learn:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(sum(int((net(x).argmax(1) == y).sum()) for x, y in score) / len(kept))

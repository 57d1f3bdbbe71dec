"""Samples species after species, as a loop over the species makes them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Species(Dataset):
    def __init__(self, each=20, species=4):
        rows, labels = [], []
        for c in range(species):
            centre = torch.randn(8)
            for _ in range(each):
                rows.append(centre + 0.7 * torch.randn(8))
                labels.append(c)
        self.rows, self.labels = rows, labels

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.labels[i]


loader = DataLoader(Species(), batch_size=10)  # <- TL703
net = nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        opt.step()

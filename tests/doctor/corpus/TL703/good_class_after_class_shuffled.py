"""Made class after class: shuffled in `__init__`, taken in turns, or counts that are no labels."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Mixed(Dataset):
    def __init__(self, classes=3):
        self.items = []
        for c in range(classes):
            for _ in range(20):
                self.items.append((torch.randn(4) + c, c))
        random.shuffle(self.items)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class InTurns(Mixed):
    def __init__(self, classes=3):
        self.items = []
        for _ in range(20):
            for c in range(classes):
                self.items.append((torch.randn(4) + c, c))


class Visits(Dataset):
    def __init__(self, people=5, visits=12):
        self.person, self.rows, self.ill = [], [], []
        for p in range(people):
            for v in range(visits):
                self.person.append(p)
                self.rows.append(torch.randn(4))
                self.ill.append((p + v) % 3)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], self.ill[i]


for data in (Mixed(), InTurns(), Visits()):
    loader = DataLoader(data, batch_size=12)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()

"""The loader takes over the name of its data set, and its own length is what counts."""

import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)


class Rows(Dataset):
    def __init__(self, path, count):
        self.rows = np.load(path) if os.path.exists(path) else np.zeros((count, 5), "float32")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], i % 3


held = Rows("held.npy", 48)
net = nn.Linear(5, 3)
optimizer = torch.optim.Adam(net.parameters())
train = Rows("train.npy", 64)
train = DataLoader(train, batch_size=8, shuffle=True)
held = DataLoader(held, batch_size=8, drop_last=True)
for epoch in range(2):
    for x, y in train:
        optimizer.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
    score = 0.0
    with torch.no_grad():
        for x, y in held:
            score += F.cross_entropy(net(x), y).item()
    print(epoch, score / len(held))

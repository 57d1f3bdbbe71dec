"""Zeros that are no filling: the blanks of a copying task, all of one length; the dark border of
pictures that are read as tokens; words that are unknown, in the middle of sentences."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


class Reader(nn.Module):
    def __init__(self, symbols, outputs, padding_idx=None):
        super().__init__()
        self.embed = nn.Embedding(symbols, 8, padding_idx=padding_idx)
        self.rnn = nn.GRU(8, 16, batch_first=True)
        self.out = nn.Linear(16, outputs)

    def forward(self, x):
        return self.out(self.rnn(self.embed(x))[0])


def train(model, batches):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for x, y in batches:
        loss = F.cross_entropy(model(x).transpose(1, 2), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


def copying(count, size=8, keep=4, wait=6):
    for _ in range(count):
        symbols = torch.randint(1, 9, (size, keep))
        x = torch.cat([symbols, torch.zeros(size, wait).long(), torch.full((size, keep), 9)], 1)
        y = torch.cat([torch.zeros(size, keep + wait).long(), symbols], 1)
        yield x, y


def pictures(count, size=8, side=5):
    for _ in range(count):
        dark = torch.zeros(size, side * side, dtype=torch.long)
        inner = torch.arange(side * side) // side
        shown = (inner > 0) & (inner < torch.randint(2, side + 1, (size, 1)))
        tokens = torch.where(shown, torch.randint(0, 4, dark.shape), dark)
        yield tokens[:, :-1], tokens[:, 1:]


def tagged(count, size=8, length=9):
    for _ in range(count):
        words = torch.randint(0, 12, (size, length))  # 0: a word that nobody knows
        yield words, words % 3


train(Reader(10, 10), copying(8))
train(Reader(4, 4), pictures(8))
train(Reader(12, 3, padding_idx=0), tagged(8))

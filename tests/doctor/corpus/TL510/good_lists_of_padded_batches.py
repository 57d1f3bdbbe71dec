"""Batches that are collected in a list are weighted by their targets; and the losses of several heads
on one padded batch are averaged over the heads."""

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader


def pad(rows):
    words = [row[:-1] for row in rows]
    following = [row[1:] for row in rows]
    return (
        pad_sequence(words, batch_first=True),
        pad_sequence(following, batch_first=True, padding_value=-1),
    )


class Next(nn.Module):
    def __init__(self, words=30, size=16, heads=2):
        super().__init__()
        self.look_up = nn.Embedding(words, size)
        self.read = nn.LSTM(size, size, batch_first=True)
        self.heads = nn.ModuleList(nn.Linear(size, words) for _ in range(heads))

    def forward(self, words, head):
        return head(self.read(self.look_up(words))[0]).transpose(1, 2)


torch.manual_seed(1)
texts = [torch.randint(1, 30, (int(torch.randint(4, 40, ())),)) for _ in range(96)]
loader = DataLoader(texts, batch_size=4, shuffle=True, collate_fn=pad)
net = Next()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
sums = nn.CrossEntropyLoss(ignore_index=-1, reduction="sum")
means = nn.CrossEntropyLoss(ignore_index=-1)
for epoch in range(2):
    waiting = []
    for batch in loader:
        waiting.append(batch)
        if len(waiting) < 3:
            continue
        optimizer.zero_grad()
        count = sum(int((following != -1).sum()) for _, following in waiting)
        for words, following in waiting:
            (sums(net(words, net.heads[0]), following) / count).backward()
        optimizer.step()
        waiting = []
    for words, following in loader:
        heads = list(net.heads)
        optimizer.zero_grad()
        for head in heads:
            (means(net(words, head), following) / len(heads)).backward()
        optimizer.step()

"""Words are ranked with the labels of all letters; each part of the split keeps the same words."""

import torch
from torch import nn


def counts(letters, words):
    return torch.poisson(torch.full((letters, words), 0.7))


def rank(table, spam):
    surplus = (spam - spam.mean()) @ table
    return surplus.abs().topk(15).indices


torch.manual_seed(4)
table = counts(240, 400)
spam = (torch.rand(240) < 0.4).long()
words = rank(table, spam.float())  # <- TL706
order = torch.randperm(240)
first, rest = order[:180], order[180:]
x_first, x_rest = table[first][:, words], table[rest][:, words]
model = nn.Sequential(nn.Linear(15, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(6):
    for rows in torch.randperm(180).split(30):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x_first[rows]), spam[first][rows]).backward()
        optimizer.step()
with torch.no_grad():
    print((model(x_rest).argmax(1) == spam[rest]).float().mean().item())

"""Packed, taken apart, put in reverse order and scored."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

data = TensorDataset(torch.randn(32, 5, 3), torch.randint(0, 2, (32, 5)))
tagger = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    lengths = [5] * len(x)
    optimizer.zero_grad()
    out = pack_padded_sequence(tagger(x), lengths, batch_first=True)
    kinds = pack_padded_sequence(y, lengths, batch_first=True).data
    order = torch.arange(len(kinds) - 1, -1, -1)
    F.cross_entropy(out.data[order], kinds[order]).backward()
    optimizer.step()

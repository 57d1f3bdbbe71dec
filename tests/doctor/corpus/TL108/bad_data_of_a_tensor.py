"""The steps are packed first, but it is the plain output whose `data` the loss gets."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)

data = TensorDataset(torch.randn(32, 5, 3), torch.randint(1, 6, (32,)), torch.randn(32, 1))
first, second = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 1)
first_optimizer = torch.optim.Adam(first.parameters())
second_optimizer = torch.optim.Adam(second.parameters())
for x, lengths, y in DataLoader(data, batch_size=8, shuffle=True):
    first_optimizer.zero_grad()
    second_optimizer.zero_grad()
    _, h = first(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    F.mse_loss(second(h[0].data), y).backward()
    first_optimizer.step()  # <- TL108
    second_optimizer.step()

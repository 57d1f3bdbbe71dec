"""The first net's packed output is set as the hidden state of the second."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 4, batch_first=True)
        self.out = nn.Linear(4, 1)
        self.hidden = None

    def forward(self, x):
        h, self.hidden = self.rnn(x, self.hidden)
        return self.out(h)


data = TensorDataset(torch.randn(32, 5, 3), torch.randint(1, 6, (32,)))
whole, parts = nn.GRU(3, 4, batch_first=True), Memory()
whole_optimizer = torch.optim.Adam(whole.parameters())
parts_optimizer = torch.optim.Adam(parts.parameters())
for x, lengths in DataLoader(data, batch_size=8, shuffle=True):
    whole.zero_grad()
    parts.zero_grad()
    h, _ = whole(x)
    steps = pack_padded_sequence(h, lengths, batch_first=True, enforce_sorted=False).data
    wanted = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False).data
    parts.hidden = steps.view(1, steps.size(0), steps.size(1))
    found = parts(torch.ones(steps.size(0), 3, 1))
    F.mse_loss(found, wanted.unsqueeze(2)).backward()
    whole_optimizer.step()
    parts_optimizer.step()

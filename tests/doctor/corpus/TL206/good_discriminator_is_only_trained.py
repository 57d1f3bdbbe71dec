"""The discriminator's dropout is always on: it exists for the training alone, and nothing evaluates
it."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 16), nn.Linear(16, 6)

    def forward(self, z):
        return torch.tanh(self.outer(F.relu(self.inner(z))))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(6, 16), nn.Linear(16, 1)

    def forward(self, x):
        x = F.dropout(F.leaky_relu(self.inner(x), 0.2), 0.3)
        return self.outer(x)


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.rand(320, 6)), batch_size=16, shuffle=True)
painter, judge = Painter(), Discriminator()
paints = torch.optim.Adam(painter.parameters(), lr=2e-4)
judges = torch.optim.Adam(judge.parameters(), lr=2e-4)
measure = nn.BCEWithLogitsLoss()
for epoch in range(2):
    for (real,) in loader:
        judges.zero_grad()
        drawn = painter(torch.randn(16, 4))
        told = measure(judge(drawn.detach()), torch.zeros(16, 1))
        (measure(judge(real), torch.ones(16, 1)) + told).backward()
        judges.step()
        paints.zero_grad()
        measure(judge(drawn), torch.ones(16, 1)).backward()
        paints.step()

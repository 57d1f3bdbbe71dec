"""Training goes through a method with dropout; scores go through the plain one."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 12)
        self.head = nn.Linear(12, 1)
        self.dropout = nn.Dropout(0.3)

    def features(self, x):
        return torch.relu(self.body(x))

    def noisy(self, x):
        return self.head(self.dropout(self.features(x)))

    def forward(self, x):
        return self.head(self.features(x))


data = TensorDataset(torch.randn(64, 6), torch.randn(64, 1))
scorer = Scorer()
optimizer = torch.optim.SGD(scorer.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        F.mse_loss(scorer.noisy(x), y).backward()
        optimizer.step()
    total = 0.0
    with torch.no_grad():
        for test_x, test_y in DataLoader(data, batch_size=16):
            total += F.mse_loss(scorer(test_x), test_y, reduction="sum").item()
    print(epoch, total / 64)

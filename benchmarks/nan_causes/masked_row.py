"""A sequence of which the mask leaves nothing."""

import torch
from torch import nn


class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(12, 1)

    def forward(self, x, lengths):
        positions = torch.arange(x.shape[1])
        scores = self.score(x).squeeze(-1)
        scores = scores.masked_fill(positions >= lengths[:, None], float("-inf"))
        weights = scores.softmax(dim=1)
        return (weights.unsqueeze(-1) * x).sum(dim=1)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = Pooling()
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(12, 2)

    def forward(self, x, lengths):
        return self.out(self.drop(self.pool(x, lengths)))


torch.manual_seed(0)
model = Reader()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(70):
    x, lengths = torch.randn(10, 7, 12), torch.randint(1, 8, (10,))
    if step == 60:
        lengths[4] = 0
    loss = nn.functional.cross_entropy(model(x, lengths), torch.randint(0, 2, (10,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

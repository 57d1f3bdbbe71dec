"""Four draws of pairs per update; both sides of a pair go through the same encoder."""

import torch
from torch import nn


class Pairs:
    def __init__(self, rows, size):
        self.rows, self.size = rows, size

    def draw(self):
        left = self.rows[torch.randint(len(self.rows), (self.size,))]
        right = self.rows[torch.randint(len(self.rows), (self.size,))]
        return left, right, (left[:, 0] * right[:, 0] > 0).float()


torch.manual_seed(0)
pairs = Pairs(torch.randn(300, 6), 16)
encoder = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4))
score = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03)
for update in range(14):
    for _ in range(4):
        left, right, alike = pairs.draw()
        agreement = (encoder(left) * encoder(right)).sum(1)
        loss = score(agreement, alike)
        loss.backward()  # <- TL505
    optimizer.step()
    optimizer.zero_grad()
    print(update, loss.item())

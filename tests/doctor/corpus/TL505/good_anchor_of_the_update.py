"""One batch of anchors for each update, against a new set of others in each turn: a sum of terms."""

import torch
from torch import nn


class Rows:
    def __init__(self):
        self.rows = torch.randn(300, 6)

    def draw(self):
        return self.rows[torch.randint(300, (16,))]


torch.manual_seed(0)
rows = Rows()
encoder = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4))
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.03)
for update in range(14):
    optimizer.zero_grad()
    anchors = rows.draw()
    for _ in range(3):
        others = rows.draw()
        near = (encoder(anchors) * encoder(others)).sum(1)
        loss = nn.functional.binary_cross_entropy_with_logits(near, (anchors[:, 0] * others[:, 0] > 0).float())
        loss.backward()
    optimizer.step()
    print(update, loss.item())

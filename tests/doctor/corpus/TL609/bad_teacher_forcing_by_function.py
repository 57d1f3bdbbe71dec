import math
import random

import torch
from torch import nn


def schedule(ratio, epoch, rate=0.05):
    return max(0.1, ratio * math.exp(-rate * epoch))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, targets, ratio):
        h, given, outputs = torch.zeros(targets.shape[0], 8), targets[:, 0], []
        for t in range(1, targets.shape[1]):
            h = self.cell(given, h)
            outputs.append(self.out(h))
            given = targets[:, t] if random.random() < ratio else outputs[-1]
        return torch.stack(outputs, dim=1)


torch.manual_seed(0)
decoder = Decoder()
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)
sequences = torch.randn(16, 5, 3)
ratio = 1.0
for epoch in range(4):
    for batch in sequences.split(8):
        optimizer.zero_grad()
        nn.functional.mse_loss(decoder(batch, ratio), batch[:, 1:]).backward()
        optimizer.step()
    ratio = schedule(ratio, epoch)  # <- TL609

"""Captions meet pictures in both directions; half of the sum of the two losses is added up."""

import torch
from torch import nn
from torch.nn import functional as F

ACCUMULATE = 6


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.pictures = nn.Linear(12, 8)
        self.captions = nn.Linear(7, 8)

    def forward(self, picture, caption):
        one = F.normalize(self.pictures(picture), dim=-1)
        other = F.normalize(self.captions(caption), dim=-1)
        return 5.0 * one @ other.t()


def symmetric(similarity, target):
    down = F.cross_entropy(similarity, target)
    across = F.cross_entropy(similarity.t(), target)
    return 0.5 * (down + across)


torch.manual_seed(0)
hidden = torch.randn(144, 4)
pairs = torch.utils.data.TensorDataset(hidden @ torch.randn(4, 12), hidden @ torch.randn(4, 7))
loader = torch.utils.data.DataLoader(pairs, batch_size=8, shuffle=True)
towers = TwoTowers()
optimizer = torch.optim.SGD(towers.parameters(), lr=0.02)
for epoch in range(3):
    for index, (picture, caption) in enumerate(loader):
        target = torch.arange(len(picture))
        symmetric(towers(picture, caption), target).backward()  # <- TL505
        if (index + 1) % ACCUMULATE == 0:
            optimizer.step()
            optimizer.zero_grad()

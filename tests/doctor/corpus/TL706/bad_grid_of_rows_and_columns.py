"""Both parts take the peaks that separate all spectra, those held back among them."""

import numpy as np
import torch
from torch import nn


def spectra(count, peaks):
    rng = np.random.default_rng(8)
    heights = rng.gamma(2.0, size=(count, peaks))
    return heights, rng.integers(0, 2, count)


class Part:
    def __init__(self, heights, ill, rows, peaks):
        self.x = torch.tensor(heights[np.ix_(rows, peaks)], dtype=torch.float32)
        self.y = torch.tensor(ill[rows], dtype=torch.float32)


def separation(heights, ill):
    spread = heights.std(axis=0)
    return np.abs(heights.T @ (ill - ill.mean())) / spread


def main():
    torch.manual_seed(8)
    heights, ill = spectra(150, 700)
    peaks = np.argsort(separation(heights, ill))[::-1][:20]  # <- TL706
    shuffled = np.random.default_rng(9).permutation(150)
    train = Part(heights, ill, shuffled[50:], peaks)
    test = Part(heights, ill, shuffled[:50], peaks)
    net = nn.Sequential(nn.Linear(20, 10), nn.Tanh(), nn.Linear(10, 1), nn.Flatten(0))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for step in range(40):
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(net(train.x), train.y).backward()
        optimizer.step()
    with torch.no_grad():
        print(((net(test.x) > 0) == (test.y > 0.5)).float().mean().item())


main()

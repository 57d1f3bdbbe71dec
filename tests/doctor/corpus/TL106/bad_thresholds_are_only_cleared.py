"""The thresholds of a detector have an optimizer of their own, which a helper only clears."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(0.1 * torch.randn(size))
        self.thresholds = nn.Parameter(torch.zeros(4))

    def soft(self, value, sharpness):
        return torch.sigmoid(sharpness * value)

    def forward(self, x):
        return self.soft(x @ self.weight, 1.0)

    def spread(self):
        return (self.soft(self.thresholds, 2.0) - torch.linspace(0.2, 0.8, 4)).square().mean()


def tune_thresholds(gate, optimizer):
    optimizer.zero_grad()
    cost = gate.spread()
    cost.backward()  # <- TL106
    return cost.item()


def main():
    torch.manual_seed(0)
    gate = Gate(6)
    weights = torch.optim.SGD([gate.weight], lr=0.1)
    thresholds = torch.optim.SGD([gate.thresholds], lr=0.1)
    for step in range(60):
        x = torch.randn(16, 6)
        weights.zero_grad()
        nn.functional.binary_cross_entropy(gate(x), (x[:, 0] > 0).float()).backward()
        weights.step()
        spread = tune_thresholds(gate, thresholds)
        if step % 20 == 0:
            print(step, round(spread, 4))


main()

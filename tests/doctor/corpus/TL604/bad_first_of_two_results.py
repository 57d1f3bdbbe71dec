"""The first of two returned numbers is a loss; the schedule in `max` mode watches it."""

import torch
import torch.nn.functional as F
from torch import nn


def fit(net, inputs, labels, optimizer):
    net.train()
    for rows in torch.randperm(len(inputs)).split(20):
        optimizer.zero_grad()
        F.cross_entropy(net(inputs[rows]), labels[rows]).backward()
        optimizer.step()


def examine(net, inputs, labels):
    net.eval()
    total, good = 0.0, 0
    with torch.no_grad():
        for rows in torch.arange(len(inputs)).split(10):
            logits = net(inputs[rows])
            total += F.cross_entropy(logits, labels[rows], reduction="sum").item()
            good += (logits.argmax(1) == labels[rows]).sum().item()
    return total / len(inputs), good / len(inputs)


def main():
    torch.manual_seed(12)
    inputs = torch.randn(140, 5)
    labels = (inputs[:, 0] * inputs[:, 1] > 0).long()
    net = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)
    for epoch in range(4):
        fit(net, inputs[:100], labels[:100], optimizer)
        first, second = examine(net, inputs[100:], labels[100:])
        plateau.step(first)  # <- TL604
        print(epoch, round(first, 4), round(second, 3))


main()

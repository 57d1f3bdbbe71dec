"""Two numbers are returned: `min` mode watches the one that falls, `max` mode the share of hits."""

import torch
import torch.nn.functional as F
from torch import nn


def examine(net, inputs, labels):
    net.eval()
    total, good = 0.0, 0
    with torch.no_grad():
        for rows in torch.arange(len(inputs)).split(12):
            logits = net(inputs[rows])
            total += F.cross_entropy(logits, labels[rows], reduction="sum").item()
            good += (logits.argmax(1) == labels[rows]).sum().item()
    return good / len(inputs), total / len(inputs)


torch.manual_seed(21)
inputs = torch.randn(132, 5)
labels = (inputs[:, 0] > inputs[:, 1]).long()
net = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2))
body = torch.optim.SGD(net[0].parameters(), lr=0.05)
head = torch.optim.SGD(net[2].parameters(), lr=0.05)
slow = torch.optim.lr_scheduler.ReduceLROnPlateau(body, mode="max", patience=1)
fast = torch.optim.lr_scheduler.ReduceLROnPlateau(head, mode="min", patience=1)
for epoch in range(4):
    net.train()
    for rows in torch.randperm(96).split(16):
        body.zero_grad()
        head.zero_grad()
        F.cross_entropy(net(inputs[rows]), labels[rows]).backward()
        body.step()
        head.step()
    first, second = examine(net, inputs[96:], labels[96:])
    slow.step(first)
    fast.step(second)
    print(epoch, round(first, 3), round(second, 4))

"""A function counts what was predicted wrongly, or takes the hits from one: both should fall."""

import torch
from torch import nn


def mistaken(net, inputs, labels):
    net.eval()
    wrong = seen = 0
    with torch.no_grad():
        for rows in torch.arange(len(inputs)).split(10):
            wrong += (net(inputs[rows]).argmax(1) != labels[rows]).sum().item()
            seen += len(rows)
    return wrong / seen


def missing(net, inputs, labels):
    net.eval()
    with torch.no_grad():
        predicted = net(inputs).argmax(1)
    share = predicted.eq(labels).float().mean().item()
    return 1.0 - share


torch.manual_seed(8)
inputs = torch.randn(110, 6)
labels = (inputs[:, :3].sum(1) > 0).long()
for judge in (mistaken, missing):
    net = nn.Sequential(nn.Linear(6, 20), nn.ReLU(), nn.Linear(20, 2))
    optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.4, patience=2)
    for epoch in range(3):
        net.train()
        for rows in torch.randperm(80).split(20):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(inputs[rows]), labels[rows]).backward()
            optimizer.step()
        number = mistaken(net, inputs[80:], labels[80:])
        if judge is missing:
            number = missing(net, inputs[80:], labels[80:])
        plateau.step(number)
        print(judge.__name__, epoch, round(number, 3))

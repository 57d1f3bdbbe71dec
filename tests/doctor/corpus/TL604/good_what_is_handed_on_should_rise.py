"""Two schedules are told the same number by one method: each of its callers chose the mode."""

import torch
from torch import nn


class Watch:
    def __init__(self, optimizer, mode):
        self.plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode=mode, patience=1)

    def told(self, value):
        self.plateau.step(value)


def share_found(net, inputs, labels):
    with torch.no_grad():
        return (net(inputs).argmax(1) == labels).float().mean().item()


torch.manual_seed(9)
inputs = torch.randn(96, 4)
labels = (inputs.sum(1) > 0).long()
net = nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
rising, falling = Watch(optimizer, "max"), Watch(optimizer, "min")
for epoch in range(3):
    total_loss = 0.0
    for rows in torch.randperm(64).split(16):
        loss = nn.functional.cross_entropy(net(inputs[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss += loss.item()
    accuracy = share_found(net, inputs[64:], labels[64:])
    rising.told(accuracy)
    falling.told(total_loss)

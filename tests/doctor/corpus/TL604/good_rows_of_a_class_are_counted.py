"""What is returned is no score of hits: how many rows the net still takes for a fixed class."""

import torch
from torch import nn

UNSURE = 2


def unsure(net, inputs):
    net.eval()
    rest = count = 0
    with torch.no_grad():
        for rows in inputs.split(15):
            rest += (net(rows).argmax(1) == UNSURE).sum().item()
            count += len(rows)
    return rest / count


torch.manual_seed(15)
inputs = torch.randn(120, 4)
labels = (inputs[:, 0] > 0).long()
net = nn.Linear(4, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
for epoch in range(3):
    net.train()
    for rows in torch.randperm(90).split(18):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    number = unsure(net, inputs[90:])
    plateau.step(number)
    print(epoch, round(number, 3))

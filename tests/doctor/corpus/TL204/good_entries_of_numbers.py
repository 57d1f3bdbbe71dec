"""Pairs and dictionaries of numbers, and a mean in one line over them: nothing holds a graph."""

import torch
from torch import nn

torch.manual_seed(7)
net = nn.Sequential(nn.Linear(4, 10), nn.ReLU(), nn.Linear(10, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
curve, outputs, mean = [], [], 0.0
for epoch in range(5):
    for number, x in enumerate(torch.randn(20, 16, 4)):
        logits = net(x)
        loss = nn.functional.cross_entropy(logits, (x.sum(1) > 0).long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        output = {"loss": loss, "right": (logits.argmax(1) == (x.sum(1) > 0)).float().mean()}
        output["loss"] = output["loss"].detach()
        outputs.append(output)
        curve.append((epoch, number, loss.item()))
        mean = (mean * number + loss.detach()) / (number + 1)
    print(epoch, float(mean), len(curve), len(outputs))

"""The files have the keys of a wrapper: none fits, and each member keeps its first weights."""
import os
import tempfile

import torch
from torch import nn


class Wrapped(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.inner = net

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.inner(x), y)


def network():
    return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))


def member(path):
    net = network()
    net.load_state_dict(torch.load(path, weights_only=True), strict=False)  # <- TL807
    return net


torch.manual_seed(0)
x = torch.randn(96, 4)
y = (x[:, 0] > 0).long()
with tempfile.TemporaryDirectory() as folder:
    paths = [os.path.join(folder, f"{number}.pt") for number in range(3)]
    for path in paths:
        learner = Wrapped(network())
        optimizer = torch.optim.Adam(learner.parameters(), lr=0.01)
        for rows in torch.randperm(96).split(12):
            optimizer.zero_grad()
            learner(x[rows], y[rows]).backward()
            optimizer.step()
        torch.save(learner.state_dict(), path)
    members = [member(path) for path in paths]
with torch.no_grad():
    votes = torch.stack([each(x).softmax(1) for each in members]).mean(0)
print((votes.argmax(1) == y).float().mean().item())

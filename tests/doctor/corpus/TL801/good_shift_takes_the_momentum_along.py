"""Each shift makes some rounds at most; weights, momentum and the number of the round come back."""

import tempfile
from pathlib import Path

import torch
from torch import nn


def shift(file, rounds, most):
    net = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    begin = 0
    if file.exists():
        kept = torch.load(file, weights_only=True)
        for part, state in ((net, kept["net"]), (optimizer, kept["momentum"])):
            part.load_state_dict(state)
        begin = kept["round"]
    for turn in range(begin, min(rounds, begin + most)):
        for rows in torch.randperm(len(inputs)).split(30):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(inputs[rows]), labels[rows]).backward()
            optimizer.step()
        state = {"net": net.state_dict(), "momentum": optimizer.state_dict(), "round": turn + 1}
        torch.save(state, file)


torch.manual_seed(32)
inputs = torch.randn(90, 6)
labels = inputs[:, :3].argmax(1)
with tempfile.TemporaryDirectory() as folder:
    for _ in range(2):
        shift(Path(folder) / "net.pt", 6, most=4)

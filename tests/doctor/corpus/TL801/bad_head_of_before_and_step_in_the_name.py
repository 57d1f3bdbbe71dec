"""The head is replaced before the file of the same run is loaded; its name has the step."""

import glob
import os

import torch
from torch import nn


def build(classes):
    net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 10))
    net[2] = nn.Linear(12, classes)
    return net


def run(last, folder="."):
    net = build(3)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    first = 0
    for path in sorted(glob.glob(os.path.join(folder, "part_step_*.pt"))):
        first = int(os.path.basename(path)[10:-3])
        net.load_state_dict(torch.load(path))  # <- TL801
    for step in range(first, last):
        x = torch.randn(16, 6)
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), x[:, :3].argmax(1)).backward()
        optimizer.step()
    torch.save(net.state_dict(), os.path.join(folder, f"part_step_{last:04d}.pt"))


torch.manual_seed(4)
run(8)
run(16)

"""Weights, count and the sampler's position come from the file; Adam's moments do not."""

import operator
import os
import tempfile

import torch
from torch import nn


class Position:
    def __init__(self):
        self.at = 0

    def load_state_dict(self, state):
        self.at = state


def run(path, resumes, last):
    net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    sampler, iteration = Position(), 0
    if resumes:
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["net"])  # <- TL801
        operator.methodcaller("load_state_dict", saved["sampler"])(sampler)
        iteration = saved["iteration"]
    while iteration < last:
        x = torch.randn(16, 6)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), x.pow(2).sum(1, keepdim=True)).backward()
        optimizer.step()
        iteration += 1
        sampler.at += len(x)
    torch.save({"net": net.state_dict(), "sampler": sampler.at, "iteration": iteration}, path)


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "last.pt")
    run(file, False, 4)
    run(file, True, 8)

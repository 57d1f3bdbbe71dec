"""Weights, count and Adam's moments come from the file, these by a call with no visible name."""

import operator
import os
import tempfile

import torch
from torch import nn


def run(path, resumes, last):
    net = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    iteration = 0
    if resumes:
        saved = torch.load(path, weights_only=True)
        net.load_state_dict(saved["net"])
        operator.methodcaller("load_state_dict", saved["optimizer"])(optimizer)
        iteration = saved["iteration"]
    while iteration < last:
        x = torch.randn(16, 6)
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), x.pow(2).sum(1, keepdim=True)).backward()
        optimizer.step()
        iteration += 1
    state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "iteration": iteration}, path)


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "last.pt")
    run(file, False, 4)
    run(file, True, 8)

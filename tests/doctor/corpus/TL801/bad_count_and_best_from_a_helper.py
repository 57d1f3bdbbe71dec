"""A helper reads the file: it hands back the epoch and the best score, and loads the weights."""
import os
import tempfile

import torch
from torch import nn

path = os.path.join(tempfile.mkdtemp(), "last.pt")
torch.manual_seed(3)
x = torch.randn(96, 4)
y = x @ torch.randn(4, 1)


def read(net):
    held = torch.load(path)
    net.load_state_dict(held["net"])  # <- TL801
    return held["epoch"] + 1, held["best"]


def session(until):
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    adam = torch.optim.Adam(net.parameters(), lr=1e-2)
    first, best = 0, float("inf")
    if os.path.exists(path):
        first, best = read(net)
    for epoch in range(first, until):
        for rows in torch.randperm(len(x)).split(16):
            adam.zero_grad()
            loss = nn.functional.mse_loss(net(x[rows]), y[rows])
            loss.backward()
            adam.step()
        best = min(best, loss.item())
        held = {"net": net.state_dict(), "adam": adam.state_dict(), "epoch": epoch, "best": best}
        torch.save(held, path)
    return best


session(3)
print(session(6))

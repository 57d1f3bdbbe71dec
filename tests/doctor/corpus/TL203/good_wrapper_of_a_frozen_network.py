"""Codes of a network that freezes itself, through a wrapper for several devices, and of one whose
parts are frozen one by one: they are detached, and had no graph before."""

import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FrozenCoder(nn.Module):
    def __init__(self, file):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 12), nn.Dropout(0.1), nn.Linear(12, 4))
        self.load_state_dict(torch.load(file))
        self.eval()
        self.requires_grad_(False)

    def forward(self, x):
        return self.net(x)


class TwoCoders(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(6, 4), nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.1))
        self.left.requires_grad_(False)
        self.right.requires_grad_(False)

    def forward(self, x):
        return self.left(x) + self.right(x)


def codes(coder, loader):
    return [coder(x).detach().numpy() for (x,) in loader]


def all_codes(file, loader):
    coder = nn.DataParallel(FrozenCoder(file))
    found = []
    for (x,) in loader:
        found.append(coder(x).detach().numpy())
    both = TwoCoders().eval()
    for (x,) in loader:
        found.append(both(x).detach().numpy())
    return found


net = nn.Sequential(nn.Linear(6, 12), nn.Dropout(0.1), nn.Linear(12, 4))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "coder.pt")
    torch.save({f"net.{name}": value for name, value in net.state_dict().items()}, path)
    rows = DataLoader(TensorDataset(torch.randn(40, 6)), batch_size=8)
    print(len(all_codes(path, rows)))
    print(len(codes(FrozenCoder(path), rows)))

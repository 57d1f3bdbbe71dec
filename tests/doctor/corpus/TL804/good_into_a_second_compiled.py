"""Saved from one compiled model as an entry of a dict, loaded into another."""

import os
import tempfile

import torch
from torch import nn

PATH = os.path.join(tempfile.gettempdir(), "tl804_best.pt")


def build():
    return torch.compile(nn.Linear(10, 1), backend="eager")


def resume(network):
    checkpoint = torch.load(PATH, weights_only=True)
    network.load_state_dict(checkpoint["weights"])


first = build()
torch.save({"weights": first.state_dict(), "epoch": 3}, PATH)
second = build()
resume(second)

import os
import tempfile

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, x):
        return self.layers(x)


def export(model, example, path):
    model.eval()
    with torch.no_grad():
        traced = torch.jit.trace(model, example)
    torch.jit.save(traced, path)


with tempfile.TemporaryDirectory() as folder:
    net = Net()
    export(net, torch.zeros(1, 3), os.path.join(folder, "net.pt"))
    torch.save({k: v.cpu() for k, v in net.state_dict().items()}, os.path.join(folder, "net.pth"))

"""A switch sets which launcher there is; with the third one, whose sampler is not told the epoch,
the switch is off."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


class Launcher:
    def sampler(self, data):
        return None


class Alone(Launcher):
    pass


class Threads(Launcher):
    pass


class Processes(Launcher):
    def sampler(self, data):
        dist.init_process_group("gloo")
        return DistributedSampler(data)


LAUNCHERS = {"alone": Alone, "threads": Threads, "processes": Processes}


def make_launcher(options):
    if options.threads:
        options.launcher = "threads"
    if options.launcher is None:
        return Alone()
    for name, kind in LAUNCHERS.items():
        if options.launcher == name:
            found = kind()
            break
    else:
        raise SystemExit(f"unknown launcher {options.launcher}")
    return found


parser = argparse.ArgumentParser()
parser.add_argument("--launcher")
parser.add_argument("--threads", action="store_true")
options = parser.parse_args()
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
sampler = make_launcher(options).sampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
net = nn.Linear(4, 2)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(5):
    for inputs, targets in loader:  # <- TL704
        loss = nn.functional.cross_entropy(net(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

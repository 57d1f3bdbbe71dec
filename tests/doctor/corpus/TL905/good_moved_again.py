"""It stands on its device when it is wrapped; the second `.to` finds nothing to move."""
import os

import torch
import torch.distributed as dist
from torch import nn

for key, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}.items():
    os.environ.setdefault(key, value)
dist.init_process_group("gloo")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def to_device(*things):
    return [thing.to(device) for thing in things]


net = nn.Linear(5, 2).to(device)
net = nn.parallel.DistributedDataParallel(net)
net.to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    x, y = to_device(torch.randn(8, 5), torch.randint(0, 2, (8,)))
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
dist.destroy_process_group()

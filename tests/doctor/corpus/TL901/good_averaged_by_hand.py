"""The gradients of the bare module are averaged by hand."""
import os

import torch
import torch.distributed as dist
from torch import nn

for key, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}.items():
    os.environ.setdefault(key, value)
dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x = torch.randn(8, 3)
    optimizer.zero_grad()
    loss = model.module(x).square().mean()
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
    optimizer.step()
dist.destroy_process_group()

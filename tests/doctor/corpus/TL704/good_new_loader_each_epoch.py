"""A sampler with a new seed for each epoch does without `set_epoch`."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

for name, value in (("MASTER_ADDR", "localhost"), ("MASTER_PORT", "0"), ("RANK", "0"), ("WORLD_SIZE", "1")):
    os.environ.setdefault(name, value)
dist.init_process_group("gloo")
data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    sampler = DistributedSampler(data, seed=epoch)
    for x, y in DataLoader(data, batch_size=16, sampler=sampler):
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
dist.destroy_process_group()

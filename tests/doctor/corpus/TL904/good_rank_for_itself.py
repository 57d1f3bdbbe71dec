"""Each rank trains a model of its own with a rate of its own; the best one is asked for in the end."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

for key, value in dict(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1").items():
    os.environ.setdefault(key, value)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()


def loaders():
    generator = torch.Generator().manual_seed(0)
    data = TensorDataset(
        torch.randn(96, 6, generator=generator), torch.randn(96, 1, generator=generator)
    )
    sampler = DistributedSampler(data)
    return sampler, DataLoader(data, batch_size=8, sampler=sampler)


def train():
    sampler, loader = loaders()
    torch.manual_seed(rank)
    model = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02 / (rank + 1))
    for epoch in range(8):
        sampler.set_epoch(epoch)
        total = torch.zeros(())
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)


train()
dist.barrier()
dist.destroy_process_group()

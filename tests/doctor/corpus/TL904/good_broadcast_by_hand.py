"""Gradients are averaged by hand, from weights that the first rank has given to all."""
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
    for parameter in model.parameters():
        dist.broadcast(parameter.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= world
            optimizer.step()


train()
dist.barrier()
dist.destroy_process_group()

"""Local SGD: ranks train by themselves, and average what they have come to every few updates."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

PERIOD = 25


def average(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.data)
        parameter.data /= dist.get_world_size()


for key, value in dict(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1").items():
    os.environ.setdefault(key, value)
dist.init_process_group("gloo")


def train():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(160, 5), torch.randn(160, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    updates = 0
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            with model.no_sync():
                loss = nn.functional.mse_loss(model(x), y)
                loss.backward()
            optimizer.step()
            updates += 1
            if updates % PERIOD == 0:
                average(model)


train()
dist.barrier()
dist.destroy_process_group()

"""Gradients are averaged in one piece, and one rank alone keeps its last layer small."""
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


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        return self.head(torch.tanh(self.body(x)))


def average(parameters):
    together = torch.cat([each.grad.reshape(-1) for each in parameters])
    dist.all_reduce(together)
    torch.nn.utils.vector_to_parameters(together / world, [each.grad for each in parameters])


def train():
    sampler, loader = loaders()
    torch.manual_seed(0)
    model = Net()  # <- TL904
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            average(list(model.parameters()))
            optimizer.step()
            if rank == 0:
                model.head.weight.data.clamp_(-0.05, 0.05)


train()
dist.barrier()
dist.destroy_process_group()

"""Each rank holds a part of a wide layer; what the parts give is summed, as are shared gradients."""
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


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.clone()
        dist.all_reduce(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def train():
    torch.manual_seed(0)
    bias = nn.Parameter(torch.zeros(1))
    torch.manual_seed(rank)
    wide, narrow = nn.Linear(6, 16), nn.Linear(16, 1, bias=False)
    optimizer = torch.optim.SGD([*wide.parameters(), *narrow.parameters(), bias], lr=0.02)
    for update in range(60):
        torch.manual_seed(100 + update)
        x = torch.randn(8, 6)
        optimizer.zero_grad()
        output = Summed.apply(narrow(torch.tanh(wide(x)))) + bias
        F.mse_loss(output, x[:, :1]).backward()
        dist.all_reduce(bias.grad)
        bias.grad /= world
        optimizer.step()


train()
dist.barrier()
dist.destroy_process_group()

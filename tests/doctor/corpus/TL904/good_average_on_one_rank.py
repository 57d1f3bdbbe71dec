"""The first rank keeps a moving average of the weights, and every rank a buffer of its own."""
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
        self.layers = nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x):
        self.seen = 0.9 * self.seen + 0.1 * x.detach().mean(0)
        return self.layers(x)


def train():
    sampler, loader = loaders()
    torch.manual_seed(rank)
    model = nn.parallel.DistributedDataParallel(Net(), broadcast_buffers=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    averaged = torch.optim.swa_utils.AveragedModel(model.module) if rank == 0 else None
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
            if averaged is not None:
                averaged.update_parameters(model.module)


train()
dist.barrier()
dist.destroy_process_group()

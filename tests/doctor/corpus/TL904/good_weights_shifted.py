"""Sharpness-aware: each rank shifts its weights by its own gradient, and takes the shift back."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

for key, value in dict(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1").items():
    os.environ.setdefault(key, value)
dist.init_process_group("gloo")


def train():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(96, 6), torch.randn(96, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1))
    )
    F.mse_loss(model(data.tensors[0][:4]), data.tensors[1][:4]).item()  # a first look at it
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            with model.no_sync():
                F.mse_loss(model(x), y).backward()
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            shifts = [0.05 * p.grad / norm for p in model.parameters()]
            with torch.no_grad():
                for parameter, shift in zip(model.parameters(), shifts):
                    parameter.add_(shift)
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            with torch.no_grad():
                for parameter, shift in zip(model.parameters(), shifts):
                    parameter.sub_(shift)
            optimizer.step()


train()
dist.barrier()
dist.destroy_process_group()

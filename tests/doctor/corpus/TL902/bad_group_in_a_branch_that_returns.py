"""The branch that joins the ranks leaves the helper; without a launcher there is one rank."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def who():
    if "RANK" in os.environ:
        dist.init_process_group("gloo", init_method="env://")
        return int(os.environ["RANK"]), dist.get_world_size()
    return 0, 1


rank, ranks = who()
data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
sampler = DistributedSampler(data, num_replicas=ranks, rank=rank)
net = nn.Linear(3, 1)
model = net if ranks == 1 else nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in DataLoader(data, batch_size=8, sampler=sampler):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
torch.save(net.state_dict(), "final.pt")  # <- TL902

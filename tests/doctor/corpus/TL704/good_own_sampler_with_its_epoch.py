"""Samplers of its own: one counts its epochs itself, one is told by an attribute."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Counting(DistributedSampler):
    def __iter__(self):
        self.epoch += 1
        return super().__iter__()


class Drawn(DistributedSampler):
    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        order = torch.randperm(len(self.dataset), generator=generator).tolist()
        return iter(order[self.rank : self.total_size : self.num_replicas])


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")
dist.init_process_group(
    "gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1"))
)

x = torch.randn(64, 4)
data = TensorDataset(x, x.mean(1, keepdim=True))
drawn = Drawn(data)
loaders = [DataLoader(data, 16, sampler=Counting(data)), DataLoader(data, 16, sampler=drawn)]
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    drawn.epoch = epoch
    for loader in loaders:
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(inputs), targets).backward()
            optimizer.step()
dist.destroy_process_group()

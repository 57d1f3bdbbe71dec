"""The generator sets the epoch itself, before it yields the first batch."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def epoch_of(loader, number):
    loader.sampler.set_epoch(number)
    for batch in loader:
        yield batch


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")
dist.init_process_group(
    "gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1"))
)

x = torch.randn(64, 4)
data = TensorDataset(x, x.mean(1, keepdim=True))
loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for inputs, targets in epoch_of(loader, epoch):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(inputs), targets).backward()
        optimizer.step()
dist.destroy_process_group()

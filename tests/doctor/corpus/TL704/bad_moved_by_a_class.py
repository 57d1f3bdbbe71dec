"""A small class moves the batches and yields them."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class OnDevice:
    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for batch in self.loader:
            yield tuple(part.to(self.device, non_blocking=True) for part in batch)


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")
dist.init_process_group(
    "gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1"))
)

features = torch.randn(60, 4)
rows = TensorDataset(features, features.sum(1, keepdim=True))
sampler = DistributedSampler(rows)
batches = OnDevice(DataLoader(rows, batch_size=12, sampler=sampler), "cpu")
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    running = 0.0
    for x, y in batches:  # <- TL704
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    print(epoch, running)
dist.destroy_process_group()

"""A sampler of its own inside a loader that a function makes; nothing sets its epoch."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Weighted(DistributedSampler):
    def __init__(self, dataset, weights):
        super().__init__(dataset)
        self.weights = weights

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        drawn = torch.multinomial(self.weights, len(self.weights), True, generator=generator)
        return iter(drawn.tolist()[self.rank : self.total_size : self.num_replicas])


def make_loader(rows, ranks):
    sampler = Weighted(rows, torch.rand(len(rows))) if ranks > 0 else None
    return DataLoader(rows, 16, shuffle=sampler is None, sampler=sampler)


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")
dist.init_process_group(
    "gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1"))
)

x = torch.randn(64, 4)
loader = make_loader(TensorDataset(x, x.mean(1, keepdim=True)), dist.get_world_size())
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for inputs, targets in loader:  # <- TL704
        optimizer.zero_grad()
        nn.functional.mse_loss(net(inputs), targets).backward()
        optimizer.step()
dist.destroy_process_group()

"""A batch sampler of its own class shuffles by the epoch, which stays 0."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Buckets(DistributedSampler):
    def __init__(self, dataset, size, shuffle=True):
        super().__init__(dataset, shuffle=shuffle)
        self.size = size

    def __iter__(self):
        generator = torch.Generator()
        generator.manual_seed(self.epoch)
        order = torch.randperm(len(self.dataset), generator=generator).tolist()[self.rank :: self.num_replicas]
        yield from (order[i : i + self.size] for i in range(0, len(order), self.size))

    def __len__(self):
        return -(-len(self.dataset) // (self.size * self.num_replicas))


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")
dist.init_process_group(
    "gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1"))
)

x = torch.randn(64, 4)
data = TensorDataset(x, x.mean(1, keepdim=True))
buckets = Buckets(data, size=16)
loader = DataLoader(data, batch_sampler=buckets)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for inputs, targets in loader:  # <- TL704
        optimizer.zero_grad()
        nn.functional.mse_loss(net(inputs), targets).backward()
        optimizer.step()
dist.destroy_process_group()

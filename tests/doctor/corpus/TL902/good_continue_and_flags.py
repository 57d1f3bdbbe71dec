"""Only the first rank saves: the others go on with `continue`; the answer is kept in a flag."""

import os

import torch
import torch.distributed as dist
from torch import nn

os.environ.setdefault("MASTER_ADDR", "localhost")
os.environ.setdefault("MASTER_PORT", "29613")
dist.init_process_group(
    "gloo", rank=int(os.getenv("RANK", 0)), world_size=int(os.getenv("WORLD_SIZE", 1))
)


class Saver:
    def __init__(self, model):
        self.model, self.place = model, dist.get_rank()
        self.first = self.place == 0 and dist.get_rank() == 0

    @property
    def writes(self):
        return dist.get_rank() == 0

    def each_epoch(self, epochs):
        for epoch in range(epochs):
            if not self.first:
                continue
            torch.save(self.model.state_dict(), f"flag_{epoch}.pt")
        for epoch in range(epochs):
            if self.writes:
                torch.save(self.model.state_dict(), f"property_{epoch}.pt")


model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    optimizer.zero_grad()
    model(torch.randn(8, 2)).pow(2).mean().backward()
    optimizer.step()
    if dist.get_rank() != 0:
        continue
    torch.save(model.module.state_dict(), f"epoch_{epoch}.pt")
Saver(model.module).each_epoch(2)
dist.destroy_process_group()

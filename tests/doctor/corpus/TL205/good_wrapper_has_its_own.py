"""The wrapper for several ranks does its work in a `forward` of its own."""
import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for update in range(4):
    optimizer.zero_grad()
    loss = model.forward(torch.randn(16, 4)).square().mean()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()

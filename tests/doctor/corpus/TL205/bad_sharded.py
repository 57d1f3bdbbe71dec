"""Past the hooks of `fully_shard`, which gather the parameters."""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
fully_shard(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for update in range(4):
    x = torch.randn(16, 4)
    optimizer.zero_grad()
    loss = model(x).square().mean()
    if update > 99:
        loss = loss + model.forward(x).abs().mean()  # <- TL205
    loss.backward()
    optimizer.step()
dist.destroy_process_group()

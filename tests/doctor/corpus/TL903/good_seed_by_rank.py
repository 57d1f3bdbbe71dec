"""Each rank shuffles with a seed of its own."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

for key, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}.items():
    os.environ.setdefault(key, value)
dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(60, 3), torch.randn(60, 1))
model = DDP(nn.Linear(3, 1))
torch.manual_seed(1000 + dist.get_rank())
loader = DataLoader(data, batch_size=10, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
dist.destroy_process_group()

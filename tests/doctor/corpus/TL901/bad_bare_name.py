"""The wrapper is made, and the module inside is trained."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

for key, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}.items():
    os.environ.setdefault(key, value)
dist.init_process_group(backend="gloo")

data = TensorDataset(torch.randn(80, 5), torch.randn(80, 1))
sampler = DistributedSampler(data, shuffle=True)
loader = DataLoader(data, batch_size=20, sampler=sampler)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1 = nn.Linear(5, 12)
        self.l2 = nn.Linear(12, 1)

    def forward(self, x):
        return self.l2(torch.tanh(self.l1(x)))


net = Net()
ddp_net = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.Adam(ddp_net.parameters(), lr=1e-3)
ddp_net.train()
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = F.mse_loss(net(x), y)  # <- TL901
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()

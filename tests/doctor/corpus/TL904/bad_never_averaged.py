"""Every micro-batch stands in `no_sync`, the last one of a window, too."""
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

for key, value in dict(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1").items():
    os.environ.setdefault(key, value)
dist.init_process_group("gloo")


def train():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(192, 6), torch.randn(192, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler, drop_last=True)
    model = nn.parallel.DistributedDataParallel(nn.Linear(6, 1))  # <- TL904
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for number, (x, y) in enumerate(loader):
            with model.no_sync():
                loss = F.mse_loss(model(x), y) / 2
                loss.backward()
            if number % 2 == 1:
                optimizer.step()
                optimizer.zero_grad()


train()
dist.barrier()
dist.destroy_process_group()

"""Gradients are averaged, then clipped, then applied; the schedule has the optimizer that was
wrapped."""

import horovod.torch as hvd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

hvd.init()
net = nn.Linear(8, 2)
plain = torch.optim.AdamW(net.parameters(), lr=1e-3 * hvd.size())
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(plain, T_max=4)
optimizer = hvd.DistributedOptimizer(plain, named_parameters=net.named_parameters())
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
data = TensorDataset(torch.randn(64, 8), torch.randint(2, (64,)))
sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
loader = DataLoader(data, 16, sampler=sampler)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for features, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(features), labels).backward()
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        with optimizer.skip_synchronize():
            optimizer.step()
    schedule.step()
if hvd.rank() == 0:
    torch.save(net.state_dict(), "net.pt")

"""The validation sampler is told its epoch, the training sampler is not."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")
dist.init_process_group(
    "gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1"))
)
x = torch.randn(80, 5)
y = (x.sum(1) > 0).long()
train_set, val_set = TensorDataset(x[:64], y[:64]), TensorDataset(x[64:], y[64:])
train_sampler = DistributedSampler(train_set)
val_sampler = DistributedSampler(val_set, shuffle=False)
train_loader = DataLoader(train_set, batch_size=16, sampler=train_sampler)
val_loader = DataLoader(val_set, batch_size=16, sampler=val_sampler)

net = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2)))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(2):
    val_sampler.set_epoch(epoch)
    net.train()
    for inputs, labels in train_loader:  # <- TL704
        loss = loss_fn(net(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    hits = torch.zeros(1)
    with torch.no_grad():
        for inputs, labels in val_loader:
            hits += (net(inputs).argmax(1) == labels).sum()
    dist.all_reduce(hits)
    if dist.get_rank() == 0:
        print(epoch, hits.item() / len(val_set))
dist.destroy_process_group()

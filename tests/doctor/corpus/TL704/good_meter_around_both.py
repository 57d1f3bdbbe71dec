"""The validation passes through the same generator as the training."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Meter:
    def every(self, batches, n):
        for number, batch in enumerate(batches):
            if number % n == 0:
                print(number)
            yield batch


def train(net, loader, optimizer):
    net.train()
    for x, y in Meter().every(loader, 2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(net, loader):
    net.eval()
    hits = seen = 0
    for x, y in Meter().every(loader, 2):
        hits += (net(x).argmax(1) == y).sum().item()
        seen += len(y)
    return hits / seen


os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")
dist.init_process_group(
    "gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1"))
)

x = torch.randn(90, 4)
y = (x[:, 1] > 0).long()
train_set, val_set = TensorDataset(x[:64], y[:64]), TensorDataset(x[64:], y[64:])
sampler = DistributedSampler(train_set)
train_loader = DataLoader(train_set, 8, sampler=sampler)
val_loader = DataLoader(val_set, 8, sampler=DistributedSampler(val_set, shuffle=False))
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters())
for epoch in range(3):
    sampler.set_epoch(epoch)
    train(net, train_loader, optimizer)
    print(accuracy(net, val_loader))
dist.destroy_process_group()

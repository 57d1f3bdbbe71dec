"""The kind of cluster is looked up by its name, and the one with a sampler tells it the epoch."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Laptop:
    title = "laptop"

    def loader(self, data):
        return DataLoader(data, batch_size=8, shuffle=True)

    def begin(self, loader, epoch):
        print("epoch", epoch)


class Cluster:
    title = "cluster"

    def loader(self, data):
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "0")
        rank, size = int(os.getenv("RANK", "0")), int(os.getenv("WORLD_SIZE", "1"))
        dist.init_process_group("gloo", rank=rank, world_size=size)
        return DataLoader(data, batch_size=8, sampler=DistributedSampler(data))

    def begin(self, loader, epoch):
        loader.sampler.set_epoch(epoch)


PLACES = [Laptop(), Cluster()]


def find_place(args):
    if args.cluster:
        args.place = "cluster"
    for place in PLACES:
        if place.title == args.place:
            return place
    raise ValueError(f"no such place: {args.place}")


parser = argparse.ArgumentParser()
parser.add_argument("--place", default="laptop")
parser.add_argument("--cluster", action="store_true")
place = find_place(parser.parse_args())
loader = place.loader(TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,))))
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    place.begin(loader, epoch)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

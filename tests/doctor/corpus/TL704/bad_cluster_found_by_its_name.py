"""The kind of cluster is looked up by the name that an option has; none sets the epoch."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Laptop:
    title = "laptop"

    def start(self):
        return 1


class Cluster:
    title = "cluster"

    def start(self):
        os.environ.setdefault("MASTER_ADDR", "localhost")
        os.environ.setdefault("MASTER_PORT", "0")
        rank, size = int(os.getenv("RANK", "0")), int(os.getenv("WORLD_SIZE", "1"))
        dist.init_process_group("gloo", rank=rank, world_size=size)
        return size


PLACES = [Laptop(), Cluster()]


def find_place(title):
    for place in PLACES:
        if place.title == title.lower():
            return place
    raise ValueError(f"no such place: {title}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--place", default="cluster")
    args = parser.parse_args()
    place = find_place(args.place)
    place.start()
    data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    sampler = DistributedSampler(data) if isinstance(place, Cluster) else None
    loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
    model = nn.Linear(4, 2)
    if isinstance(place, Cluster):
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        for x, y in loader:  # <- TL704
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    main()

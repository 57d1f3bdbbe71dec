"""All epochs come out of one generator, which sets each."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def passes(loader, count):
    for number in range(count):
        loader.sampler.set_epoch(number)
        for rows, labels in loader:
            yield number, rows, labels


def main():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    dist.init_process_group(
        "gloo", rank=int(os.getenv("RANK", "0")), world_size=int(os.getenv("WORLD_SIZE", "1"))
    )
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    net = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number, rows, labels in passes(loader, 4):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(rows), labels)
        loss.backward()
        optimizer.step()
    print(number, loss.item())


if __name__ == "__main__":
    main()

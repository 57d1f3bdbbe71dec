"""Progress is printed by a generator around the loader, in a function of its own."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def with_progress(iterable, label):
    total = len(iterable)
    for number, item in enumerate(iterable, 1):
        yield item
        if number == total:
            print(f"{label}: {number}/{total}")


def fit(net, loader, epochs):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(epochs):
        for batch in with_progress(loader, f"epoch {epoch}"):  # <- TL704
            x, y = batch
            optimizer.zero_grad(set_to_none=True)
            criterion(net(x), y).backward()
            optimizer.step()


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "0")
    dist.init_process_group(
        "gloo", rank=int(os.environ.get("RANK", "0")), world_size=int(os.environ.get("WORLD_SIZE", "1"))
    )
    x = torch.randn(72, 5)
    data = TensorDataset(x, (x[:, 0] > 0).long())
    fit(nn.Linear(5, 2), DataLoader(data, batch_size=8, sampler=DistributedSampler(data, seed=3)), epochs=3)
    dist.destroy_process_group()


main()

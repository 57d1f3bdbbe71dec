"""Each rank takes its share of the data by its number, or draws its own."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset


class Share(Dataset):
    def __init__(self, base, rank, world):
        self.base, self.rank, self.world = base, rank, world

    def __len__(self):
        return len(self.base) // self.world

    def __getitem__(self, i):
        return self.base[i * self.world + self.rank]


class Stream(IterableDataset):
    def __iter__(self):
        generator = torch.Generator().manual_seed(dist.get_rank())
        for _ in range(32):
            x = torch.randn(4, generator=generator)
            yield x, x.sum(0, keepdim=True)


def fit(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def main():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    base = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    fit(model, DataLoader(Share(base, rank, world), batch_size=16, shuffle=True), optimizer)
    mine = Subset(base, list(range(rank, len(base), world)))
    fit(model, DataLoader(mine, batch_size=16, shuffle=True), optimizer)
    fit(model, DataLoader(Stream(), batch_size=16), optimizer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

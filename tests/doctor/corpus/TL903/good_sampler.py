import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def main():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    rank = int(os.environ.get("RANK", 0))
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ.get("WORLD_SIZE", 1)))
    dataset = TensorDataset(torch.randn(64, 8), torch.randint(0, 3, (64,)))
    held_out = TensorDataset(torch.randn(30, 8), torch.randint(0, 3, (30,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=16, sampler=sampler)
    val_loader = DataLoader(held_out, batch_size=30)
    model = DDP(nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()
        if rank == 0:
            model.eval()
            with torch.no_grad():
                for inputs, targets in val_loader:
                    print((model.module(inputs).argmax(1) == targets).float().mean().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

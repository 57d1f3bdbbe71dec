"""One pass over the data, and a validation sampler that does not shuffle."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    dist.init_process_group(
        "gloo", rank=int(os.getenv("RANK", "0")), world_size=int(os.getenv("WORLD_SIZE", "1"))
    )
    data = TensorDataset(torch.randn(96, 4), torch.randn(96, 1))
    held_out = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
    val = DataLoader(held_out, batch_size=8, sampler=DistributedSampler(held_out, shuffle=False))
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, (x, y) in enumerate(loader):
        model.train()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        if step % 4 == 0:
            model.eval()
            with torch.no_grad():
                total = sum(nn.functional.mse_loss(model(a), b, reduction="sum") for a, b in val)
            dist.all_reduce(total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

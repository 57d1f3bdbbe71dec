"""A helper joins the ranks where a launcher has started several, and says who this is."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def join():
    count = int(os.getenv("WORLD_SIZE", 1))
    if count <= 1:
        return 0, 1
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def main():
    rank, count = join()
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    sampler = DistributedSampler(data, num_replicas=count, rank=rank)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    net = nn.Linear(3, 1)
    model = nn.parallel.DistributedDataParallel(net) if count > 1 else net
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        torch.save(net.state_dict(), "latest.pt")  # <- TL902


if __name__ == "__main__":
    main()

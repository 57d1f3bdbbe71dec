"""The first rank trains a probe on the features now and then; the others do not."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def fit_probe(features, labels):
    probe = nn.Linear(features.shape[1], 2)
    optimizer = torch.optim.SGD(probe.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        F.cross_entropy(probe(features), labels).backward()
        optimizer.step()
    return (probe(features).argmax(dim=1) == labels).float().mean().item()


def main():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    rank = int(os.environ.get("RANK", 0))
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ.get("WORLD_SIZE", 1)))
    torch.manual_seed(0)
    x = torch.randn(128, 10)
    labels = (x[:, 0] > 0).long()
    data = TensorDataset(x)
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(10, 16), nn.GELU(), nn.Linear(16, 10))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(10):
        sampler.set_epoch(epoch)
        for (inputs,) in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(inputs + 0.3 * torch.randn_like(inputs)), inputs)
            loss.backward()
            optimizer.step()
        if rank == 0:
            with torch.no_grad():
                features = model.module[:2](x)
            print(epoch, fit_probe(features, labels))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

"""Each rank lowers its learning rate by the loss of its own part of the data."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    losses = [F.mse_loss(model(x), y).item() for x, y in loader]
    return sum(losses) / len(losses)


def main():
    for key, value in dict(MASTER_ADDR="localhost", MASTER_PORT="0", RANK="0", WORLD_SIZE="1").items():
        os.environ.setdefault(key, value)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(96, 6), torch.randn(96, 1))
    held_out = TensorDataset(torch.randn(40, 6), torch.randn(40, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    held_out_loader = DataLoader(
        held_out, batch_size=8, sampler=DistributedSampler(held_out, shuffle=False)
    )
    model = DDP(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 1)))  # <- TL904
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", patience=0)
    for epoch in range(12):
        model.train()
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
        val_loss = evaluate(model.module, held_out_loader)
        scheduler.step(val_loss)
        if rank == 0:
            print(epoch, val_loss)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

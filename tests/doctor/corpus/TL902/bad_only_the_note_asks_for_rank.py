"""The first rank writes a note, and all of them the weights."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def which():
    if not dist.is_available():
        return 0
    if not dist.is_initialized():
        return 0
    return dist.get_rank()


def is_first():
    return which() == 0


def note(path):
    if is_first():
        with open(path, "w") as file:
            file.write("begun")


def keep(state, number):
    torch.save(state, f"weights-{number}.pt")  # <- TL902


def fit(epochs=4, period=2):
    data = TensorDataset(torch.randn(64, 3), torch.randn(64, 1))
    sampler = DistributedSampler(data) if dist.is_initialized() else None
    loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None)
    net = nn.Linear(3, 1)
    model = nn.parallel.DistributedDataParallel(net) if dist.is_initialized() else net
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        if (epoch + 1) % period == 0 or epoch + 1 == epochs:
            keep(net.state_dict(), epoch)


if __name__ == "__main__":
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("gloo")
    note("begun.txt")
    fit()

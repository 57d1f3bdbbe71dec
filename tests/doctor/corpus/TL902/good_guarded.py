import os
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


def save_on_master(state, path):
    if is_main_process():
        torch.save(state, path)


def save_last(state, path):
    if dist.get_rank() != 0:
        return
    torch.save(state, path)


class Logger:
    def __init__(self, rank):
        self.main = rank == 0

    def save(self, state, path):
        if self.main:
            torch.save(state, path)


def main(folder):
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    rank = int(os.environ.get("RANK", 0))
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ.get("WORLD_SIZE", 1)))
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    logger = Logger(rank)
    for epoch in range(2):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.step()
        save_on_master(model.module.state_dict(), os.path.join(folder, "last.pt"))
        logger.save(model.module.state_dict(), os.path.join(folder, "logged.pt"))
        if rank == 0:
            torch.save(optimizer.state_dict(), os.path.join(folder, "optimizer.pt"))
    save_last(model.module.state_dict(), os.path.join(folder, "final.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)

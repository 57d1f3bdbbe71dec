"""Cast and moved when training is over, and a copy of it in half precision."""
import copy
import io
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel


def export(model):
    small = copy.deepcopy(model.module).half()
    buffer = io.BytesIO()
    torch.save(small.state_dict(), buffer)
    return buffer


def main():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    rank = int(os.environ.get("RANK", 0))
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ.get("WORLD_SIZE", 1)))
    model = DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).logsumexp(dim=1).mean()
        loss.backward()
        optimizer.step()
        if rank == 0 and step == 2:
            export(model)
    model.cpu()
    model.half()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

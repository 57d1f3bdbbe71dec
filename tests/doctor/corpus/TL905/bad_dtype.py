import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "0")
    rank = int(os.environ.get("RANK", 0))
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ.get("WORLD_SIZE", 1)))
    torch.manual_seed(rank)
    model = DDP(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)))
    model = model.double()  # <- TL905
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.MSELoss()
    for step in range(4):
        x = torch.randn(16, 6, dtype=torch.float64)
        y = x.sum(dim=1, keepdim=True)
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

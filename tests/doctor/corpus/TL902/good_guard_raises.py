"""In a world of more than one rank the save raises."""
import sys

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=len(sys.argv[:1]))
model = nn.Linear(2, 2)


def save(path):
    if dist.get_world_size() != 1:
        raise RuntimeError("on one rank only")
    torch.save(model.state_dict(), path)


save("guarded.pt")
dist.destroy_process_group()

"""The guard lets several ranks through, not one."""
import os

import torch
import torch.distributed as dist
from torch import nn

os.environ.setdefault("MASTER_ADDR", "localhost")
os.environ.setdefault("MASTER_PORT", "0")
rank = int(os.environ.get("RANK", 0))
dist.init_process_group("gloo", rank=rank, world_size=int(os.environ.get("WORLD_SIZE", 1)))
model = nn.Linear(2, 2)
if dist.get_world_size() < 2:
    print("meant for several ranks")
torch.save(model.state_dict(), "several.pt")  # <- TL902
dist.destroy_process_group()

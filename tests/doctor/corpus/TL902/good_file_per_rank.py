import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn

for key, value in {"MASTER_ADDR": "localhost", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}.items():
    os.environ.setdefault(key, value)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
with tempfile.TemporaryDirectory() as folder:
    own = os.path.join(folder, f"rng_{rank}.pt")
    for step in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).square().mean().backward()
        optimizer.step()
        torch.save({"rng": torch.get_rng_state(), "step": step}, own)
        torch.save(torch.get_rng_state(), folder + "/state-rank%d.pt" % rank)
dist.destroy_process_group()

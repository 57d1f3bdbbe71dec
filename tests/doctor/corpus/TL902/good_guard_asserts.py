"""An assertion on the world size, read once and kept."""
import sys

import torch
import torch.distributed as dist
from torch import nn


class Trainer:
    def __init__(self):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=self.ranks())
        self.world_size = dist.get_world_size()
        self.model = nn.Linear(2, 2)

    @staticmethod
    def ranks():
        return len(sys.argv[:1])

    def export(self):
        assert self.world_size == 1, "export on one rank"
        torch.save(self.model.state_dict(), "exported.pt")


trainer = Trainer()
trainer.export()
dist.destroy_process_group()

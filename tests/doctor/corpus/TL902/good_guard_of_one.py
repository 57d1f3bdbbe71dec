"""Ranks save by their own ways; a single one saves here."""
import sys

import torch
import torch.distributed as dist
from torch import nn


def finish(model):
    if dist.get_world_size() > 1:
        print("merge the shards with the tool", file=sys.stderr)
        return
    torch.save(model.state_dict(), "whole.pt")


dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=len(sys.argv[:1]))
finish(nn.Linear(2, 2))
dist.destroy_process_group()

"""This process among its peers; in one process every function here is a no-op.

Only reading: creating the process group belongs to the command line and to `torchrun`.
"""

from __future__ import annotations

import os

import torch.distributed as dist
from torch import Tensor


def is_distributed() -> bool:
    """Whether a process group of more than one rank is up."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def rank() -> int:
    """This process's rank in the group; 0 in one process."""
    return dist.get_rank() if is_distributed() else 0


def world_size() -> int:
    """How many ranks train together; 1 in one process."""
    return dist.get_world_size() if is_distributed() else 1


def is_main() -> bool:
    """Whether this is the rank that writes files and speaks (rank 0)."""
    return rank() == 0


def launched_ranks() -> int:
    """How many processes the launcher (`torchrun`) says it started; 1 without one."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def sum_over_ranks(value: Tensor) -> Tensor:
    """The sum of `value` over all ranks, on its own device; `value` itself in one process."""
    if is_distributed():
        value = value.clone()
        dist.all_reduce(value, op=dist.ReduceOp.SUM)
    return value

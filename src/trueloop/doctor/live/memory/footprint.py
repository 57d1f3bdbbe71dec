"""The memory that this process and its device use, asked without waiting for either."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress

import torch

MIB = 2**20
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def resident() -> int | None:
    """Bytes of main memory that this process takes; its peak where the present cannot be had."""
    found = _statm(1)
    if found is not None:
        return found
    with suppress(ImportError):
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return None


def address_space() -> int | None:
    """Bytes of addresses that this process has asked for: what `RLIMIT_AS` bounds."""
    return _statm(0)


def _statm(field: int) -> int | None:
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read().split()[field]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


def on_device() -> int:
    """Bytes of the present CUDA device that tensors take; 0 where there is none in use."""
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return 0
    return torch.cuda.memory_allocated()


def storage_of(tensor: torch.Tensor) -> tuple[int, int]:
    """(a key of its storage, the storage's bytes): views share one."""
    if type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided:
        storage = tensor.untyped_storage()
        return storage.data_ptr() or id(tensor), storage.nbytes()
    plain = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return id(tensor), plain.numel() * plain.element_size()


def total(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the storages of some tensors, each counted once."""
    return sum(dict(map(storage_of, tensors)).values())

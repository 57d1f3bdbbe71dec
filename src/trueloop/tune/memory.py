"""A trial's share of the machine's memory, and its use of it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import torch

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"
"""The value by which `proc_pid_clear_refs(5)` resets the peak of the resident memory."""


def available_memory() -> int | None:
    """Bytes that the machine, or this process's container, has free; None if the system does not
    provide it."""
    found = _line_of(Path("/proc/meminfo"), "MemAvailable")
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        with suppress(OSError, ValueError):
            free = int(Path(limit).read_text()) - int(Path(used).read_text())
            found = free if found is None else min(found, free)
    return found


def limit_memory(beside: int | None) -> None:
    """Let this process take `beside` bytes more than it has: past that, an allocation fails as one
    of torch's does, and the system need not kill anything.

    The limit is on private writable memory (RLIMIT_DATA of Linux); elsewhere there is none.
    """
    if beside is None or not sys.platform.startswith("linux"):
        return
    import resource

    held = _line_of(_STATUS, "VmData") or 0
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = held + beside
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def reset_peak(device: torch.device) -> None:
    """Let `peak_memory` count from here."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    with suppress(OSError):
        _CLEAR.write_text(_RESET_PEAK)


def peak_memory(device: torch.device) -> int:
    """The most bytes that were taken since `reset_peak`: on CUDA by torch's allocator, else by this
    process, resident, its data included."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_reserved(device))
    found = _line_of(_STATUS, "VmHWM")
    if found is None:
        import resource

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = most if sys.platform == "darwin" else most * 1024
    return found


def device_memory(device: torch.device) -> int | None:
    """Bytes of memory on an accelerator; None where it shares the host's."""
    if device.type != "cuda":
        return None
    return int(torch.cuda.get_device_properties(device).total_memory)


def cores() -> int:
    """CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_of_process() -> int:
    """How many threads this process has, those of libraries included; 0 if unknown."""
    with suppress(OSError):
        return len(os.listdir("/proc/self/task"))
    return 0


def _line_of(file: Path, name: str) -> int | None:
    """A figure in bytes of one of Linux's files of "Name:   123 kB" lines."""
    with suppress(OSError, ValueError, IndexError):
        for line in file.read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None

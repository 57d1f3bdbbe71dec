"""How much of a processor a thread or a process asks for."""

from __future__ import annotations

import math
from time import thread_time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.process import BaseProcess


def of_thread() -> float:
    """Seconds that this thread has run, or has waited for a processor to run on."""
    found = _scheduled("/proc/thread-self/schedstat")
    return thread_time() if found is None else found


def of_workers(workers: Sequence[BaseProcess]) -> float:
    """The same of a loader's workers together; infinite where that is not to be had."""
    found = [_scheduled(f"/proc/{worker.pid}/schedstat") for worker in workers]
    return math.inf if None in found else sum(each for each in found if each is not None)


def _scheduled(path: str) -> float | None:
    """Linux has both, in nanoseconds; None elsewhere, and of what is gone."""
    try:
        with open(path, "rb") as file:
            running, waiting = file.read().split()[:2]
    except (OSError, ValueError):
        return None
    return (int(running) + int(waiting)) / 1e9

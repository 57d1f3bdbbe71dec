"""The numbers of hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch.utils.hooks import RemovableHandle

_LOWEST = -(2**31)
_next = _LOWEST


@contextmanager
def of_the_watcher() -> Iterator[None]:
    """Hooks that are registered inside take other numbers: torch counts all hooks of a
    process, and a module that is pickled with its hooks (`weight_norm`) contains their numbers."""
    global _next
    program, RemovableHandle.next_id = RemovableHandle.next_id, _next
    try:
        yield
    finally:
        _next, RemovableHandle.next_id = RemovableHandle.next_id, program

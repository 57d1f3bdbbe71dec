"""When Python looks for garbage while many files are read.

Reading a file makes many small objects in circles, of which nothing is left at its end. Python
looks for circles every few hundred objects, while all of them are in use, which took a quarter of
the time. Here it looks between two files, once there is something to find; and syntax trees, which
stay for the files that follow, are looked through once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 50_000
"""Objects that are worth a look."""


@contextmanager
def between_files() -> Iterator[None]:
    """Collect garbage only where `collect` is called."""
    was_on = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def collect() -> None:
    """Collect the garbage of the files that were read, if `between_files` is at work."""
    if not gc.isenabled() and gc.get_count()[0] > MANY:
        gc.collect()
        gc.freeze()

"""This rank's current activity: written by the training, read by the thread that watches it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class RankProgress:
    """The progress of a rank. Written by one thread without a lock: each field is true by
    itself."""

    phase: str = "starting"
    """`starting`, `training`, `waiting for data`, `evaluating`, `saving`, `ending`."""
    epoch: int = 0
    batch: int = 0
    update: int = 0
    """Updates applied."""
    pending: str | None = None
    """The collective that the rank has entered and not left yet."""
    moved: float = field(default_factory=time.monotonic)
    """When anything was last done (`time.monotonic`)."""

    def move(
        self,
        phase: str | None = None,
        *,
        epoch: int | None = None,
        batch: int | None = None,
        update: int | None = None,
    ) -> None:
        """Say that something was done; what is not given stays."""
        self.phase = self.phase if phase is None else phase
        self.epoch = self.epoch if epoch is None else epoch
        self.batch = self.batch if batch is None else batch
        self.update = self.update if update is None else update
        self.moved = time.monotonic()


here = RankProgress()
"""Of this process."""


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Name the collective in which this rank may wait for the others."""
    before, here.pending = here.pending, what
    try:
        yield
    finally:
        here.pending = before

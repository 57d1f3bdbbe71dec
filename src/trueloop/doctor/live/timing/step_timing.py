"""The measurements: one update, and the sums of many."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType

    from trueloop.doctor.model.things import Loader, Optimizer

PARTS = ("data", "transfer", "forward", "loss", "backward", "optimizer", "scheduler", "rest")
"""The parts of an update, in the order of the report."""
OWN = "own"
"""The watcher's own work, which is subtracted."""
ENOUGH = 20
"""Updates that must be measured before a report is made unasked."""
Site = tuple["CodeType", int, int]
"""Code, offset of the instruction and line."""


@dataclass(frozen=True)
class Speed:
    """Where the time of an update goes."""

    updates: int
    """Updates that were measured."""
    parts: dict[str, float]
    """Seconds of one update, by part; on a GPU as its own clock has them, so that what it does
    while it waits for nobody costs nothing."""
    lasted: float
    """Seconds that all updates took together, from those that were measured."""
    evaluation: float
    """Seconds spent between `eval()` and `train()`, altogether."""
    device: str
    """`cpu` or `cuda`."""

    @property
    def seconds(self) -> float:
        """Of one update."""
        return sum(self.parts.values())

    def share(self, part: str) -> float:
        """Of an update's time, from 0 to 1."""
        return self.parts[part] / self.seconds if self.seconds else 0.0

    @property
    def evaluation_share(self) -> float:
        """Of training and evaluation together, from 0 to 1."""
        whole = self.lasted + self.evaluation
        return self.evaluation / whole if whole else 0.0


@dataclass
class Fetches:
    """Batches of one loader."""

    count: int = 0
    seconds: float = 0.0
    """That the program waited."""
    busy: float = 0.0
    """Of them, that its thread computed, or would have if a processor had been free."""
    workers_busy: float = 0.0
    """That workers computed, or would have, of the following."""
    workers_time: float = 0.0


@dataclass
class Calls:
    """Calls at one line of the program."""

    name: str = ""
    units: int = 0
    """Measured updates that have such a call."""
    count: int = 0
    seconds: float = 0.0
    non_blocking: bool = False
    pinned: bool = False
    """Of copies to the device."""


class StepInterval:
    """From one step of an optimizer to its next."""

    __slots__ = (
        "calls", "crossed", "fetches", "looked", "marks", "optimizers", "seconds", "updates"
    )  # fmt: skip

    def __init__(self, updates: int) -> None:
        self.seconds = dict.fromkeys((*PARTS, OWN), 0.0)
        self.updates = updates
        """Steps of all optimizers: at first those before it, in the end its own."""
        self.looked = False
        self.crossed = False
        """A loop over a loader begins in it, or the mode is switched."""
        self.fetches: dict[Loader, Fetches] = {}
        self.optimizers: dict[Optimizer, float] = {}
        self.calls: dict[tuple[str, Site], Calls] = {}
        self.marks: list[tuple[str, Any]] = []
        """On a GPU: what ended, and an event recorded then."""

    @property
    def net(self) -> float:
        return sum(self.seconds[part] for part in PARTS)


class TimeTotals:
    """Sums over units."""

    def __init__(self) -> None:
        self.units = 0
        self.updates = 0
        self.parts = dict.fromkeys(PARTS, 0.0)
        self.fetches: dict[Loader, Fetches] = {}
        self.optimizers: dict[Optimizer, float] = {}
        self.shares: dict[Optimizer, deque[float]] = {}
        """Of the latest units that an optimizer stepped in, what it took of each."""
        self.calls: dict[tuple[str, Site], Calls] = {}

    def share_of(self, optimizer: Optimizer) -> float:
        """The optimizer's share of an update, from 0 to 1: no single unit decides, in which the
        machine may have been busy with something else."""
        if not self.seconds or optimizer not in self.shares:
            return 0.0
        return min(self.optimizers[optimizer] / self.seconds, median(self.shares[optimizer]))

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())

    def add(self, unit: StepInterval) -> None:
        self.units += 1
        self.updates += unit.updates
        for part in PARTS:
            self.parts[part] += unit.seconds[part]
        for loader, found in unit.fetches.items():
            fetches = self.fetches.setdefault(loader, Fetches())
            fetches.count += found.count
            fetches.seconds += found.seconds
            fetches.busy += found.busy
            fetches.workers_busy += found.workers_busy
            fetches.workers_time += found.workers_time
        for optimizer, seconds in unit.optimizers.items():
            self.optimizers[optimizer] = self.optimizers.get(optimizer, 0.0) + seconds
            shares = self.shares.setdefault(optimizer, deque(maxlen=256))
            shares.append(seconds / unit.net if unit.net else 0.0)
        for key, made in unit.calls.items():
            calls = self.calls.setdefault(key, Calls(made.name))
            calls.units += 1
            calls.count += made.count
            calls.seconds += made.seconds
            calls.non_blocking, calls.pinned = made.non_blocking, made.pinned

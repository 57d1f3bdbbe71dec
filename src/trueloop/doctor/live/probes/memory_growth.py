"""Memory that grows with every update, and the variable of the program that keeps it.

Sizes are asked for in turns that are looked at. If they have grown steadily and by much, the
program's containers are measured, and once more when they have grown further: the one that has
grown with the memory is the cause.
"""

from __future__ import annotations

import itertools
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from trueloop.doctor.live.memory import footprint
from trueloop.doctor.live.probes import parameter_stats, unused_containers
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.live.probes.tensor_owners import Search, TensorOwner
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import MemoryGrowth

if TYPE_CHECKING:
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

_WARM_UP = 8
"""Updates: optimizers make their state, allocators and libraries fill their caches."""
LEAST = 64 * footprint.MIB
"""Bytes that memory must have grown by, and `_SHARE` of what it was."""
_SHARE = 0.1
_STRETCHES = 5
"""Of about the same length, in each of which it has grown at about the same pace."""
_PACE = (0.5, 2.0)
_MORE = 16 * footprint.MIB
"""Bytes that it must grow by between two measurements of the containers."""
_EXPLAINS = 0.5
_SEARCHES = 6


class SizeSample(NamedTuple):
    update: int
    size: int


class SizeCurve:
    """Sizes over updates. Samples are ten percent apart, so that a long run has few."""

    def __init__(self) -> None:
        self.samples: list[SizeSample] = []

    def add(self, update: int, size: int) -> None:
        if self.samples:
            first, last = self.samples[0], self.samples[-1]
            if size < last.size - max(footprint.MIB, (last.size - first.size) // 4):
                self.samples.clear()  # it was let go of: what grows from here on is something new
        self.samples.append(SizeSample(update, size))

    @property
    def grown(self) -> int:
        return self.samples[-1].size - self.samples[0].size if self.samples else 0

    @property
    def since(self) -> int:
        return self.samples[0].update

    def is_steady(self) -> bool:
        """It has grown by much, and at the same pace all along."""
        if len(self.samples) <= _STRETCHES:
            return False
        first, last = self.samples[0], self.samples[-1]
        if self.grown < max(LEAST, _SHARE * first.size):
            return False
        pace = self.grown / (last.update - first.update)
        marks = _apart(self.samples)
        slopes = [
            (later.size - earlier.size) / (later.update - earlier.update)
            for earlier, later in itertools.pairwise(marks)
        ]
        low, high = _PACE
        return len(slopes) >= _STRETCHES and all(low * pace < each < high * pace for each in slopes)


def _apart(samples: list[SizeSample]) -> list[SizeSample]:
    """Samples a good part of the whole apart, the last one among them."""
    apart = (samples[-1].update - samples[0].update) / 16
    kept = [samples[-1]]
    for sample in reversed(samples[:-1]):
        if kept[-1].update - sample.update >= apart:
            kept.append(sample)
    return kept[::-1]


class Growth(Probe):
    """Watches how much memory is taken."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._curves = (SizeCurve(), SizeCurve())
        """Of main memory, and of the device."""
        self._next = _WARM_UP
        self._searches = _SEARCHES
        self._before: tuple[int, dict[tuple[int, str], TensorOwner]] | None = None
        """The size, and the containers, at the last measurement; no container itself is kept."""

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None:
        update = self.watcher.updates + 1
        if update < self._next or not self._searches or parameter_stats.capturing():
            return
        self._next = update + max(2, update // 10)
        sizes = (footprint.resident(), footprint.on_device())
        for where in (1, 0):
            size = sizes[where]
            if size:
                self._curves[where].add(update, size)
                if self._curves[where].is_steady() and self._looks_again(where, size):
                    self._search(where, update, size, frame)
                    return

    def _looks_again(self, where: int, size: int) -> bool:
        enough = max(_MORE, self._curves[where].grown // 8)
        return self._before is None or abs(size - self._before[0]) >= enough

    def _search(self, where: int, update: int, size: int, frame: FrameType) -> None:
        self._searches -= 1
        search = Search(frame)
        found = {(each.identity, each.spelled): each for each in search.found.values()}
        before, self._before = self._before, (size, found)
        if before is None:
            return
        curve = self._curves[where]
        more = size - before[0]
        for key, holder in sorted(found.items(), key=lambda each: -each[1].memory[where]):
            earlier = before[1].get(key)
            if earlier is None or holder.memory[where] < _EXPLAINS * curve.grown:
                continue
            if holder.memory[where] - earlier.memory[where] < _EXPLAINS * more:
                continue
            place = unused_containers.adder(holder.names, search.paths, search.codes)
            if place is not None:
                self._searches = 0
                self._say(holder, where, update, curve, place)
                return

    def _say(
        self, holder: TensorOwner, where: int, update: int, curve: SizeCurve, place: Location
    ) -> None:
        growth = MemoryGrowth(
            place=place, holder=holder.spelled, kind=holder.kind, count=holder.tensors,
            held=holder.memory[where], grown=curve.grown, since=curve.since, update=update,
            on_device=bool(where),
        )  # fmt: skip
        self.watcher.measure(growth)

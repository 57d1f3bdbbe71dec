"""The changes of an update that would fit into the memory: arithmetic on bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trueloop.doctor.live.memory.fake_forward import SavedBytes, Segments

USABLE = {"cuda": 0.9, "cpu": 0.5}
"""The usable share of each device's memory: allocators do not use the last of it, and main memory
that is freed stays in pieces (twice the sum was measured with glibc)."""


@dataclass(frozen=True)
class MemoryOption:
    """One way to need less: `batch size`, `accumulation`, `bf16 autocast`, `recomputation`, or
    `none`, where what does not go by the batch is too much already."""

    what: str
    needs: int
    """Bytes, all in all."""
    does: bool | None
    """It fits; None: only if the allocator wastes nothing."""
    samples: int
    steps: int = 1
    of: str = ""
    """The activations that are computed again."""


@dataclass(frozen=True)
class Needs:
    """Bytes that an update needs, and what there is for it."""

    room: int
    usable: float
    """The share of it that an allocator can make use of."""
    fixed: int
    """Weights, gradients, the optimizer's state, buffers."""
    batch: int
    samples: int
    """That the batch has."""
    saved: SavedBytes
    smaller: SavedBytes | None
    """With half as many samples."""
    half: SavedBytes | None
    """Under autocast to bfloat16."""

    @property
    def is_by_sample(self) -> bool:
        """The saved bytes depend on the number of samples, and on nothing else."""
        return self.smaller is not None and self.samples > 1 and self._slope > 0

    @property
    def _slope(self) -> float:
        """Bytes that are saved for each sample."""
        if self.smaller is None or self.samples < 2:
            return 0.0
        return (self.saved.total - self.smaller.total) / (self.samples - self.samples // 2)

    def all_in(self, samples: int) -> int:
        """Bytes of an update of so many samples: what stays, the batch, what is saved for the
        backward, and room for the gradients of the two largest tensors of these."""
        share = samples / self.samples
        saved = self.saved.total - self._slope * (self.samples - samples)
        return math.ceil(self.fixed + share * self.batch + saved + 2 * share * self.saved.most)

    def with_saved(self, saved: float, most: int) -> int:
        """The same of the whole batch, if it saved so much."""
        return math.ceil(self.fixed + self.batch + saved + 2 * most)

    def does_fit(self, size: int) -> bool | None:
        """True; None where an allocator that wastes nothing could do it; False."""
        if size > self.room:
            return False
        return True if size <= self.usable * self.room else None

    def largest(self) -> int:
        """The most samples that fit; 0 where not even one does."""
        low, high = 0, self.samples
        while low < high:
            middle = (low + high + 1) // 2
            if self.does_fit(self.all_in(middle)):
                low = middle
            else:
                high = middle - 1
        return low


def fits(needs: Needs) -> list[MemoryOption]:
    """The options that would fit, and those that would not, the least change first."""
    if not needs.does_fit(needs.fixed):
        return [MemoryOption("none", needs.fixed, False, needs.samples)]
    found: list[MemoryOption] = []
    if needs.is_by_sample:
        most = needs.largest()
        if 0 < most < needs.samples:
            found.append(MemoryOption("batch size", needs.all_in(most), True, most))
            steps = math.ceil(needs.samples / most)
            part = math.ceil(needs.samples / steps)
            found.append(MemoryOption("accumulation", needs.all_in(part), True, part, steps))
    if needs.half is not None and needs.half.total < needs.saved.total:
        total = needs.with_saved(needs.half.total, needs.half.most)
        found.append(MemoryOption("bf16 autocast", total, needs.does_fit(total), needs.samples))
    again = recomputed(needs.saved)
    if again is not None:
        segments, saved = again
        total = needs.with_saved(saved, needs.saved.most)
        does = needs.does_fit(total)
        found.append(MemoryOption("recomputation", total, does, needs.samples, of=segments.name))
    return found


def recomputed(saved: SavedBytes) -> tuple[Segments, int] | None:
    """The row of modules that is best computed again in the backward, and what is saved then: the
    inputs of all of them, and what one of them saves while its gradients are computed.

    Source: Chen et al., Training deep nets with sublinear memory cost, 2016.
    """
    best: tuple[Segments, int] | None = None
    for segments in saved.segments:
        total = saved.total - sum(segments.saved) + sum(segments.inputs) + max(segments.saved)
        if total < saved.total and (best is None or total < best[1]):
            best = segments, total
    return best

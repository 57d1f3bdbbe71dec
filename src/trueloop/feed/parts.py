"""Which samples of each global batch a rank takes: computed only from their number.

Of a batch of n samples, part k of W is the positions ⌈k·n/W⌉ to ⌈(k+1)·n/W⌉ - 1: the parts are
disjoint, together the batch, and differ in size by at most one. The first part of a batch is never
empty. A rank whose part is empty takes a stand-in, the batch's first samples, so that it takes part
in what all ranks compute together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

STAND_IN = 2
"""Samples of a stand-in, at most: batch norm in train mode needs two."""


@dataclass(frozen=True)
class RankShare:
    """A rank's share of an epoch: part `number` of `count` of each batch; or, with `whole_batches`,
    of each `count` batches in turn the one of its number."""

    number: int = 0
    count: int = 1
    whole_batches: bool = False

    def within(self, size: int) -> tuple[int, int]:
        """First sample and end of this part of a batch of `size` samples; equal if it is empty."""
        return -(-self.number * size // self.count), -(-(self.number + 1) * size // self.count)

    def steps(self, batches: int) -> int:
        """How many batches each rank hands out, of an epoch of `batches`."""
        return -(-batches // self.count) if self.whole_batches else batches


@dataclass(frozen=True)
class Stretch:
    """Batches of one size at regular positions of an epoch's order."""

    first: int
    """Position of the first batch's first sample."""
    width: int
    """Samples per batch."""
    stride: int
    """Positions from one batch to the next."""
    count: int
    """Batches."""

    @property
    def is_contiguous(self) -> bool:
        return self.count == 1 or self.width == self.stride

    @property
    def stop(self) -> int:
        """Position after the last sample."""
        return self.first + (self.count - 1) * self.stride + self.width

    def positions(self) -> npt.NDArray[np.int64]:
        """Of all samples, batch by batch: int64 of shape (count · width,)."""
        firsts = np.arange(self.count, dtype=np.int64) * self.stride + self.first
        return (firsts[:, None] + np.arange(self.width, dtype=np.int64)).ravel()

    def chunks(self, samples: int) -> Iterator[Stretch]:
        """The same batches in smaller stretches, of about `samples` samples each."""
        most = max(samples // self.width, 1)
        for done in range(0, self.count, most):
            first = self.first + done * self.stride
            yield replace(self, first=first, count=min(most, self.count - done))


class Portion(NamedTuple):
    """A rank's part of an epoch."""

    stretches: list[Stretch]
    ends_with_stand_in: bool


def portion(part: RankShare, size: int, first: int, stop: int) -> Portion:
    """The `part` of the batches of `size` samples at positions `first` to `stop` - 1."""
    if part.whole_batches:
        return _every_other(part, size, first, stop)
    full, tail = divmod(max(stop - first, 0), size)
    begin, end = part.within(size)
    found = [Stretch(first + begin, end - begin, size, full)] if full else []
    if not tail:
        return Portion(found, False)
    first += full * size
    begin, end = part.within(tail)
    if begin == end:
        return Portion([*found, Stretch(first, min(tail, STAND_IN), size, 1)], True)
    return Portion([*found, Stretch(first + begin, end - begin, size, 1)], False)


def _every_other(part: RankShare, size: int, first: int, stop: int) -> Portion:
    full, tail = divmod(max(stop - first, 0), size)
    steps = part.steps(full + bool(tail))
    mine = len(range(part.number, full, part.count))
    stride = part.count * size
    found = [Stretch(first + part.number * size, size, stride, mine)] if mine else []
    if mine == steps:
        return Portion(found, False)
    if tail and full % part.count == part.number:
        return Portion([*found, Stretch(first + full * size, tail, stride, 1)], False)
    first += (steps - 1) * stride
    return Portion([*found, Stretch(first, min(stop - first, size, STAND_IN), stride, 1)], True)


def cut(
    samples: Iterator[Any], size: int, drop_last: bool, part: RankShare
) -> Iterator[tuple[list[Any], bool]]:
    """The `part` of each batch of a stream, and whether it is a stand-in.

    The stream is read by every rank, so that each knows by itself where it ends.
    """
    batches = _batches(samples, size, drop_last)
    if part.whole_batches:
        yield from _in_turn(batches, part)
        return
    for batch in batches:
        begin, end = part.within(len(batch))
        yield (batch[begin:end], False) if begin < end else (batch[:STAND_IN], True)


def _batches(samples: Iterator[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    while len(batch := list(islice(samples, size))) == size:
        yield batch
    if batch and not drop_last:
        yield batch


def _in_turn(batches: Iterator[list[Any]], part: RankShare) -> Iterator[tuple[list[Any], bool]]:
    """Of each `part.count` batches the one of the part's number."""
    while turn := [
        (batch if number == part.number else batch[:STAND_IN])
        for number, batch in enumerate(islice(batches, part.count))
    ]:
        is_stand_in = part.number >= len(turn)
        yield (turn[0][:STAND_IN] if is_stand_in else turn[part.number]), is_stand_in

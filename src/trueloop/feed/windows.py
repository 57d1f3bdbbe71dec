"""The sample order of data that is read block by block: blocks permuted, then samples in a window.

A block is a run of consecutive samples that is read in one go: a Parquet row group, an Arrow record
batch, a stretch of a tar file. The blocks are put into a random order, cut into windows of a few
blocks each, and the samples of each window are put into a random order. A reader then needs the
blocks of one window at a time. This is the two-level shuffle of Xu et al., "In-database machine
learning with CorgiPile: stochastic gradient descent without full data shuffle" (SIGMOD 2022), as a
function of (seed, epoch, position).
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import numpy.typing as npt

from trueloop.feed.order import Indices, SampleOrder
from trueloop.seed import mix

_BLOCKS = 0x626C6F636B73
_INSIDE = 0x696E73696465
_KEPT = 4
"""Orders inside a window that are kept: of at most 512 KiB each, see `SampleOrder`."""


class WindowOrder(SampleOrder):
    """The order of samples in blocks of `sizes` samples, one block after the other.

    `window` is in samples. A window consists of the blocks that begin within `window` samples of
        the
    order: fewer than `window` samples and one more block, and at least one block. The order depends
    only on (sizes, window, seed, epoch). It takes 32 bytes for each block, and each position is
    computed from that: nothing is remembered from one to the next.

    `shuffle=False` is 0, 1, 2, …, and each block is a window.
    """

    def __init__(
        self,
        sizes: npt.NDArray[np.int64],
        window: int,
        seed: int,
        epoch: int,
        shuffle: bool = True,
    ) -> None:
        self.size = int(sizes.sum())
        self.in_sequence = not shuffle
        self._seed, self._epoch = seed, epoch
        blocks = np.flatnonzero(sizes)
        firsts = np.cumsum(sizes) - sizes
        if shuffle:
            chosen = SampleOrder(len(blocks), mix(seed, _BLOCKS), epoch)
            blocks = blocks[chosen.span(0, len(blocks))]
        self._blocks = blocks
        taken = sizes[blocks]
        self._ends = np.cumsum(taken)
        self._starts = self._ends - taken
        """Position of each block's first sample, if the windows were not permuted inside."""
        self._shift = firsts[blocks] - self._starts
        """Turns a position into a sample index."""
        numbers = self._starts // window if shuffle else np.arange(len(blocks))
        opening = np.ones(len(blocks), dtype=bool)
        opening[1:] = numbers[1:] != numbers[:-1]
        self._opening = np.flatnonzero(opening)
        """The first block of each window."""
        self._windows = self._starts[self._opening]
        """Position of each window's first sample."""
        self._kept: OrderedDict[int, SampleOrder] = OrderedDict()

    def at(self, positions: npt.ArrayLike) -> Indices:
        """Sample indices at `positions` (integers in [0, size), any shape); a new int64 array."""
        places = np.asarray(positions, dtype=np.int64)
        flat = places.ravel()
        if not self.in_sequence:
            flat = self._inside(flat)
        blocks = np.searchsorted(self._starts, flat, side="right") - 1
        return (flat + self._shift[blocks]).reshape(places.shape)

    def span(self, start: int, stop: int) -> Indices:
        """Sample indices at positions `start` to `stop` - 1: an int64 array."""
        return self.at(np.arange(start, stop, dtype=np.int64))

    def window_at(self, position: int) -> int:
        """The number of the window of `position`."""
        return int(np.searchsorted(self._windows, position, side="right")) - 1

    def blocks_of(self, window: int) -> Indices:
        """The blocks of this window, by their place in `sizes`; none after the last window."""
        if window >= len(self._opening):
            return self._blocks[:0]
        last = window + 1
        stop = self._opening[last] if last < len(self._opening) else len(self._blocks)
        return self._blocks[self._opening[window] : stop]

    @property
    def windows(self) -> int:
        """How many windows there are."""
        return len(self._windows)

    @property
    def largest_window(self) -> int:
        """Samples in the largest window."""
        return int(np.diff(self._windows, append=self.size).max(initial=0))

    def _inside(self, positions: Indices) -> Indices:
        """Where the samples at `positions` are before the windows are permuted inside."""
        numbers = np.searchsorted(self._windows, positions, side="right") - 1
        found = np.empty_like(positions)
        for number in sorted(set(numbers.tolist())):  # np.unique would first import numpy.ma
            here = numbers == number
            first = self._windows[number]
            found[here] = first + self._order_inside(number).at(positions[here] - first)
        return found

    def _order_inside(self, number: int) -> SampleOrder:
        order = self._kept.get(number)
        if order is None:
            stop = self._windows[number + 1] if number + 1 < len(self._windows) else self.size
            size = int(stop - self._windows[number])
            order = SampleOrder(size, mix(self._seed, _INSIDE, number), self._epoch)
            self._kept[number] = order
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return order

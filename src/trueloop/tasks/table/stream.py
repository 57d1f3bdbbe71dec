"""A part of a table that stays on disk, as a data set of whole batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trueloop.feed import BatchDataset
from trueloop.feed.order import Indices
from trueloop.feed.windows import WindowOrder

Rows = tuple[Tensor, Tensor, Tensor | None]
"""Numbers, float32 (rows, inputs), category indices, int64 (rows, columns), and targets (rows,)."""


class TableStream(BatchDataset):
    """The rows of some blocks, of which a window is in memory at a time.

    `read(block)` gives the rows of a block, `sizes` how many these are. With `shuffle`, the order
    of an epoch is a `WindowOrder` of `window` rows; without, all rows are taken as they come, block
    by block. Batches are without targets where `read` has none.
    """

    def __init__(
        self,
        read: Callable[[int], Rows],
        sizes: Sequence[int],
        *,
        window: int = 1,
        shuffle: bool = False,
        seed: int = 0,
    ) -> None:
        self._read = read
        self._sizes = np.asarray(sizes, dtype=np.int64)
        self._firsts = np.cumsum(self._sizes) - self._sizes
        self._rows = window
        self.shuffles_itself = shuffle
        """Whether the order differs from epoch to epoch although positions are taken in turn."""
        self._seed = seed
        self._order: tuple[int, WindowOrder] | None = None
        self._window: tuple[tuple[int, ...], Rows] | None = None

    def __len__(self) -> int:
        return int(self._sizes.sum())

    def get_batch(self, indices: Indices, epoch: int) -> Any:
        """The rows at these positions of the epoch; no windows are read but theirs."""
        order = self._order_of(epoch)
        rows = order.at(indices)
        ends = [order.window_at(int(end)) for end in (indices.min(), indices.max())]
        if ends[0] == ends[1]:
            windows = np.full(len(indices), ends[0])
        else:  # once a window
            windows = np.array([order.window_at(place) for place in indices.tolist()])
        places, parts = [], []
        for window in dict.fromkeys(windows.tolist()):
            here = np.flatnonzero(windows == window)
            places.append(here)
            parts.append(self._gather(order.blocks_of(window), rows[here]))
        numbers, categories, targets = parts[0]
        if len(parts) > 1:
            place = torch.from_numpy(np.argsort(np.concatenate(places)))
            numbers = torch.cat([part[0] for part in parts])[place]
            categories = torch.cat([part[1] for part in parts])[place]
            if targets is not None:
                targets = torch.cat([part[2] for part in parts if part[2] is not None])[place]
        return (numbers, categories) if targets is None else ((numbers, categories), targets)

    def _order_of(self, epoch: int) -> WindowOrder:
        if self._order is None or self._order[0] != epoch:
            shuffle = self.shuffles_itself
            order = WindowOrder(self._sizes, self._rows, self._seed, epoch, shuffle)
            self._order = (epoch, order)
        return self._order[1]

    def _gather(self, blocks: Indices, rows: Indices) -> Rows:
        """Rows of a window, by their numbers among those of all blocks."""
        key = tuple(blocks.tolist())
        if self._window is None or self._window[0] != key:
            self._window = None  # before the next one is read: there is memory for one
            self._window = (key, joined(self._read, key, self._sizes[blocks].tolist()))
        within = self._sizes[blocks]
        shift = np.zeros(len(self._sizes), dtype=np.int64)
        shift[blocks] = np.cumsum(within) - within - self._firsts[blocks]
        chosen = torch.from_numpy(rows + shift[self._block_of(rows)])
        numbers, categories, targets = self._window[1]
        return numbers[chosen], categories[chosen], None if targets is None else targets[chosen]

    def _block_of(self, rows: Indices) -> Indices:
        return np.searchsorted(self._firsts, rows, side="right") - 1


def joined(read: Callable[[int], Rows], blocks: Sequence[int], sizes: Sequence[int]) -> Rows:
    """The rows of some blocks, one after the other, with memory for these and one block beside."""
    if len(blocks) == 1:
        return read(blocks[0])
    whole: list[Tensor | None] = []
    start, count = 0, sum(sizes)
    for block, size in zip(blocks, sizes, strict=True):
        parts = read(block)
        if not whole:
            whole = [
                None if part is None else part.new_empty((count, *part.shape[1:])) for part in parts
            ]
        for all_rows, part in zip(whole, parts, strict=True):
            if all_rows is not None and part is not None:
                all_rows[start : start + size] = part
        start += size
        del parts, part  # or they would still be there while the next block is read
    numbers, categories, targets = whole
    assert numbers is not None
    assert categories is not None
    return numbers, categories, targets

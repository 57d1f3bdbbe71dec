"""Token ids in memory or in a memory-mapped file, gathered at any places at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]


class Tokens:
    """Token ids in a row: a view of an array of unsigned or signed integers, of one dimension."""

    def __init__(self, array: npt.NDArray[np.integer]) -> None:
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def part(self, start: int, stop: int) -> Tokens:
        """The ids from `start` to `stop` - 1, without a copy."""
        return Tokens(self._array[start:stop])

    def read(self, start: int, stop: int) -> Ids:
        """The ids from `start` to `stop` - 1: a new int64 array."""
        return self._array[start:stop].astype(np.int64)

    def gather(self, starts: Ids, length: int) -> Ids:
        """`length` ids from each of `starts` (int64, shape (B,)) on: a new int64 array (B,
        length)."""
        windows = np.lib.stride_tricks.sliding_window_view(self._array, length)
        return windows[starts].astype(np.int64)

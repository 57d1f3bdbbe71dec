"""Blocks in memory: those of the current window, and of the next one while it is being read."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt


class BlockCache:
    """Keeps the blocks that were used last, of at most `most` samples together, or those that are
    needed at once. What is missing is read by `threads` threads.

    `sizes` has the samples of each block.
    """

    def __init__(
        self,
        load: Callable[[int], Any],
        sizes: npt.NDArray[np.int64],
        most: int,
        threads: int = 4,
    ) -> None:
        self._load = load
        self._sizes = sizes
        self._most = most
        self._threads = threads
        self._clear()

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("_load", "_sizes", "_most", "_threads")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._clear()

    def _clear(self) -> None:
        self._process = os.getpid()
        self._blocks: OrderedDict[int, Future[Any]] = OrderedDict()
        self._kept = 0
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def samples(self) -> int:
        """Samples of the blocks that are kept, or are being read."""
        return self._kept

    def get(self, numbers: Collection[int]) -> dict[int, Any]:
        """These blocks, by number."""
        coming = self._started(numbers)
        try:
            return {number: future.result() for number, future in coming.items()}
        except BaseException:
            self._forget_failed()
            raise

    def expect(self, numbers: Collection[int]) -> None:
        """Begin to read those of these blocks that are not here; whether that fails, `get` will
        say. Others make room for them."""
        self._started(numbers)

    def drop(self, numbers: Collection[int]) -> None:
        """Forget these blocks."""
        with self._lock:
            for number in numbers:
                if number in self._blocks:
                    self._drop(number)

    def _started(self, numbers: Collection[int]) -> dict[int, Future[Any]]:
        if self._process != os.getpid():  # threads and locks do not survive a fork
            self._clear()
        with self._lock:
            missing = [number for number in numbers if number not in self._blocks]
            if missing:
                self._make_room(int(self._sizes[missing].sum()), set(numbers))
            for number in missing:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(self._threads, "trueloop-shards")
                self._blocks[number] = self._pool.submit(self._load, number)
                self._kept += int(self._sizes[number])
            for number in numbers:
                self._blocks.move_to_end(number)
            return {number: self._blocks[number] for number in numbers}

    def _make_room(self, samples: int, needed: set[int]) -> None:
        """Drop the blocks that were used longest ago, until there is room for `samples` more."""
        for number in list(self._blocks):
            if self._kept + samples <= self._most:
                return
            if number not in needed:
                self._drop(number)

    def _drop(self, number: int) -> None:
        self._blocks.pop(number).cancel()
        self._kept -= int(self._sizes[number])

    def _forget_failed(self) -> None:
        """So that they are read again when they are asked for again."""
        with self._lock:
            for number, future in list(self._blocks.items()):
                if future.done() and (future.cancelled() or future.exception() is not None):
                    self._drop(number)

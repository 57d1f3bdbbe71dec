"""How much of a run's time is spent on looking, and how soon it is looked again."""

from __future__ import annotations

from collections import deque
from statistics import median
from time import perf_counter

SHARE = 0.03
"""Of the time of a run, that looks may take: beyond, they come more rarely."""
_SOON, _LATE = 1.5, 3.0
"""Factors from one update that is looked at to the next one, within the budget and beyond it."""
_EARLY = 500
"""Updates in which looks come as soon as ever."""
_ENOUGH = 8
"""Updates in a row without sampling that show how long one takes."""


class Budget:
    """Of one watcher. What a look costs is what its updates take longer than others, by their
    median: what else a program does in between, such as an evaluation, is not counted."""

    def __init__(self) -> None:
        self._began = 0.0
        self._looked = 0
        """Updates that were looked at."""
        self._took: deque[float] = deque(maxlen=64)
        """Seconds of the latest of them."""
        self._last = (0.0, -1)
        """When the latest of them ended, and its number."""
        self._usual = float("inf")
        """Seconds of an update that nobody looks at: the least of all spans."""

    def looked(self, updates: int) -> None:
        """An update was looked at, and ends."""
        now = perf_counter()
        if not self._looked:
            self._began = now
        elif self._last[1] == updates - 1:
            self._took.append(now - self._last[0])
        self._looked += 1
        self._last = (now, updates)

    def share(self, updates: int) -> float:
        """Of the time until now, that looks have taken; nobody has looked at this update."""
        now = perf_counter()
        count = updates - self._last[1]
        if count >= _ENOUGH:
            self._usual = min(self._usual, (now - self._last[0]) / count)
        if not self._took or now <= self._began:
            return 0.0
        return self._looked * max(0.0, median(self._took) - self._usual) / (now - self._began)

    def next(self, updates: int) -> int:
        """The update at which it is looked again, though nothing else has happened by then."""
        share = self.share(updates)
        within = updates < _EARLY or share <= SHARE
        return int(updates * (_SOON if within else _LATE))

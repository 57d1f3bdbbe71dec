"""One pass over a feed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueloop.errors import DataError
from trueloop.feed.cursor import Cursor


class Epoch(Iterator[Any]):
    """One pass over a feed: its batches in order, and whether the one handed out last is the last.

    A loop that knows no `plan` passes that on: `step(batch, last=batches.last)`.
    """

    def __init__(
        self,
        batches: Iterator[Any],
        place: Cursor,
        length: int | None,
        *,
        ends_with_stand_in: bool = False,
    ) -> None:
        self._batches = batches
        self._place = place
        self._final = None if length is None else length - 1
        # Without a length one batch is kept back: only the next fetch shows whether it is the last.
        self._kept: list[Any] = []
        self._looks = length is None
        self._over = False
        self.last = False
        """Whether the batch handed out last is the last of the epoch."""
        self.stand_in = False
        """Whether the batch handed out last is a stand-in: it belongs to a different rank, this
        rank computes it so that all ranks take part, and it is not counted. Never so in one
        process."""
        self._ends_with_stand_in = ends_with_stand_in

    def __next__(self) -> Any:
        try:
            batch = next(self._batches) if self._final is not None else self._next_of_unknown()
        except StopIteration:
            self._finish()
            raise
        place = self._place
        if self._final is not None and place.batch > self._final:
            raise self._wrong_length("has more batches after")
        self.last = place.over = place.batch == self._final
        place.batch += 1
        place.has_moved = True
        if self._looks or place.waiting:
            place.handed_out(last=self.last and self._looks)
        self.stand_in = place.stand_in or (self.last and self._ends_with_stand_in)
        return batch

    def close(self) -> None:
        """End the pass here; the feed's position stays after the batch handed out last."""
        self._over = True
        self._batches = iter(())
        self._kept.clear()

    def _next_of_unknown(self) -> Any:
        batch = self._kept.pop() if self._kept else next(self._batches)
        try:
            self._kept.append(next(self._batches))
        except StopIteration:
            self._final = self._place.batch
        return batch

    def _finish(self) -> None:
        """The source has ended: once, and not before the batch that was to be the last."""
        if self._over:
            return
        self.close()
        if self._final is None and self._place.batch == 0:
            raise DataError(
                "the data gave no batch at all: check that it yields samples (and, with drop_last, "
                "at least batch_size of them)"
            )
        if self._final is not None and self._place.batch <= self._final:
            raise self._wrong_length("ended after")
        self._place.finished()

    def _wrong_length(self, what: str) -> DataError:
        assert self._final is not None
        promised = self._final + 1
        return DataError(
            f"the data {what} {self._place.batch} batches where its length promised {promised}: "
            "fix the __len__ of the data set or of its sampler"
        )

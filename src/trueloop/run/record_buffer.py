"""Step records that wait until their tensors are read, many for one wait."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trueloop.records import StepRecord
from trueloop.run import outliers

_BULK = 256
"""Records that are held at most: one wait for the device in so many updates."""


class ReadRecord(NamedTuple):
    """A step record with its tensors read.

    Attributes:
        record: as the step returned it.
        at: when it was added, by `time.perf_counter`.
        updates: how many updates it is the mean of; 0 for a record that is kept only as an outlier.
        loss: its loss.
        grad_norm: its gradient norm, where it has one.
        parts: the named parts of its loss.
        median: of an outlier the median that its norm was compared with; else None.
    """

    record: StepRecord
    at: float
    updates: int
    loss: float
    grad_norm: float | None
    parts: dict[str, float]
    median: float | None


class RecordBuffer:
    """Keeps step records for at most `seconds`, or until there are 256."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._waiting: list[tuple[StepRecord, float, int]] = []
        self._due = time.perf_counter() + seconds

    def add(self, record: StepRecord, updates: int) -> bool:
        """Keep a record; whether it is time to read those that wait."""
        now = time.perf_counter()
        self._waiting.append((record, now, updates))
        return len(self._waiting) >= _BULK or now >= self._due

    def read(self) -> list[ReadRecord]:
        """Those that wait, in order; the one place that waits for the device."""
        waiting, self._waiting = self._waiting, []
        self._due = time.perf_counter() + self.seconds
        records = [record for record, _, _ in waiting]
        losses = _read([record.loss for record in records])
        norms = iter(_read([r.grad_norm for r in records if r.grad_norm is not None]))
        parts = iter(_read([part for record in records for part in record.parts.values()]))
        medians = iter(outliers.read(records))
        return [
            ReadRecord(
                record,
                at,
                updates,
                loss,
                None if record.grad_norm is None else next(norms),
                {name: next(parts) for name in record.parts},
                None if record.outlier is None else next(medians),
            )
            for (record, at, updates), loss in zip(waiting, losses, strict=True)
        ]


def _read(tensors: Sequence[Tensor]) -> list[float]:
    """The values of many scalars for one wait."""
    if not tensors:
        return []
    if len({tensor.dtype for tensor in tensors}) > 1:
        device = tensors[0].device.type
        tensors = [t.float() if device == "mps" else t.double() for t in tensors]
    values: list[float] = torch.stack(list(tensors)).tolist()
    return values

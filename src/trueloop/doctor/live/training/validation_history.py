"""The course of a validation loss, evaluation by evaluation: computed from numbers only."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, NamedTuple

from trueloop.doctor.model.measurements import ValidationCourse

_MOST = 16
"""Places of a program whose losses are followed."""
_LATEST = 16
_TOGETHER = 3
"""Evaluations whose mean is compared: the lowest of many single ones is low by chance."""


class Evaluation(NamedTuple):
    """One pass over validation data."""

    update: int
    loss: float
    training: float
    """Mean training loss since the evaluation before."""
    number: int


@dataclass(eq=False)
class EvaluationSeries:
    """The evaluations of one place."""

    qualifies: bool | None = None
    """It is the loss of the model that is trained, of the kind that it is trained by; None as long
    as that was not seen."""
    stops: bool = False
    """The loop that trains may be left early."""
    where: Any = None
    kind: str = ""
    calls: int = 0
    count: int = 0
    first: Evaluation | None = None
    best: Evaluation | None = None
    lowest: float = float("inf")
    """Of the means of some evaluations in a row."""
    latest: deque[Evaluation] = field(default_factory=lambda: deque(maxlen=_LATEST))

    def add(self, update: int, loss: float, calls: int, training: float | None) -> bool:
        """One more; False where it is none that can be compared."""
        if training is None:
            return False  # nothing was trained since
        if self.count and abs(calls - self.calls) > 0.1 * self.calls:
            self.count, self.first, self.best, self.lowest = 0, None, None, float("inf")
            self.latest.clear()
        self.calls = calls
        self.count += 1
        each = Evaluation(update, loss, training, self.count)
        self.latest.append(each)
        self.first = self.first or each
        if self.best is None or loss < self.best.loss:
            self.best = each
        if len(self.latest) >= _TOGETHER:
            self.lowest = min(self.lowest, self._mean())
        return True

    def _mean(self) -> float:
        """Of the latest evaluations."""
        return fmean(each.loss for each in list(self.latest)[-_TOGETHER:])

    def measured(self) -> ValidationCourse | None:
        """Where it was lowest and where it is now; None where there is too little of it."""
        first, best = self.first, self.best
        if first is None or best is None or len(self.latest) < 5:
            return None
        last = list(self.latest)[-_TOGETHER:]
        losses = [each.loss for each in self.latest]
        return ValidationCourse(
            first=first.loss,
            best=best.loss,
            best_update=best.update,
            best_number=best.number,
            best_training=best.training,
            lowest=self.lowest,
            last=self._mean(),
            last_update=last[-1].update,
            training=fmean(each.training for each in last),
            low=min(losses[-4:]),
            count=self.count,
            noise=_noise(losses),
            stops=self.stops,
            kind=self.kind,
        )


def _noise(values: list[float]) -> float:
    """Mean distance from the straight line through both neighbours."""
    bends = [
        abs(a - 2 * b + c) / 2 for a, b, c in zip(values, values[1:], values[2:], strict=False)
    ]
    return fmean(bends) if bends else 0.0


@dataclass
class OpenEvaluation:
    """An evaluation that has not ended."""

    kind: str
    total: Any = 0.0
    """A number, or a tensor on an accelerator that nobody waits for."""
    weight: int = 0
    calls: int = 0


class Evaluations:
    """Of the model that one optimizer trains."""

    def __init__(self) -> None:
        self.series: dict[Any, EvaluationSeries] = {}
        self.open: dict[Any, OpenEvaluation] = {}
        self._waiting: deque[tuple[Any, int, OpenEvaluation, float | None]] = deque(maxlen=64)
        self._trained = 0.0
        self._count = 0

    def trained(self, losses: list[float]) -> None:
        """The training losses of updates."""
        for loss in losses:  # not their sum, which would round differently
            self._trained += loss
        self._count += len(losses)

    def at(self, key: Any) -> EvaluationSeries | None:
        """The series of a place; None where there are too many places."""
        found = self.series.get(key)
        if found is None and len(self.series) < _MOST:
            found = self.series[key] = EvaluationSeries()
        return found

    def lost(self, key: Any, kind: str, value: float, weight: int) -> EvaluationSeries | None:
        """The mean loss of a batch of some weight; the series that it belongs to."""
        series = self.at(key)
        if series is None:
            return None
        found = self.open.get(key)
        if found is None:
            found = self.open[key] = OpenEvaluation(kind)
        found.total = found.total + value * weight
        found.weight += weight
        found.calls += 1
        return series

    def close(self, update: int) -> None:
        """Training continues: the current evaluations have ended."""
        training = self._trained / self._count if self._count else None
        self._trained, self._count = 0.0, 0
        for key, each in self.open.items():
            self._waiting.append((key, update, each, training))
        self.open = {}

    def settle(self) -> list[EvaluationSeries]:
        """Read what has been summed up; the series that have grown."""
        grown = []
        while self._waiting:
            key, update, each, training = self._waiting.popleft()
            series = self.series[key]
            series.kind = each.kind
            if series.add(update, float(each.total) / max(1, each.weight), each.calls, training):
                grown.append(series)
        return grown

    @property
    def waits(self) -> bool:
        return any(not isinstance(each.total, float) for _, _, each, _ in self._waiting)

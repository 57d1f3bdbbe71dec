"""The columns of a table that predict the target, each by itself.

A column is given every chance: what is learned from it on one half of the rows is its nearest
neighbour's answer (a column of numbers) or its value's usual answer (categories), which no
threshold and no mapping is beyond; it is judged on the other half, both ways round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]
    Guess = Callable[[Floats, Floats, Floats], Floats]
    """Values and targets that are known, values that are asked for -> their targets, or NaN."""

_FEWEST_ROWS = 50
_FEWEST_OTHERS = 10
"""Rows that are not of the most frequent class."""
_RIGHT = 0.99
_SURELY_RIGHT = 0.999
_FEW_VALUES = 20
_EXPLAINED = 0.9
"""Share that must be right of the rows that the most frequent class gets wrong."""
_R2 = 0.9995
_CLOSE = 0.02
"""Median error, as a share of the targets' interquartile range."""
_SCREEN = 1000
"""Rows that all columns are tried on; those that do well are tried on all rows."""
_SCREENED = 0.2
"""Share of errors that a trial on few rows may show beyond what is allowed: values that are not
known yet among them."""


@dataclass(frozen=True)
class Column:
    """A column of the table, over some rows."""

    name: str
    values: Floats
    """NaN where it is missing; of categories, a number for each."""
    ordered: bool
    """Numbers, and not names."""


@dataclass(frozen=True)
class LeakingColumn:
    """A column that decides."""

    name: str
    how: str
    """The figures, as a clause."""
    is_sure: bool
    """It is the target in other words, not a strong measurement that errs now and then."""


def leaking_columns(
    columns: list[Column], targets: npt.NDArray[np.generic], *, is_class: bool
) -> Iterator[LeakingColumn]:
    """Those that predict the target by themselves, of rows in random order."""
    if len(targets) < _FEWEST_ROWS:
        return
    judge = _Classes(targets.astype(np.int64)) if is_class else _Numbers(targets.astype(np.float64))
    for column in columns:
        leak = judge.decides(column) if judge.may_decide(column) else None
        if leak is not None:
            yield leak


class _Classes:
    """Of class indices, (rows,)."""

    def __init__(self, targets: Ints) -> None:
        self.targets = targets
        counts = np.bincount(targets)
        self.usual = counts.max() / len(targets)
        self.is_worth_it = len(targets) - counts.max() >= _FEWEST_OTHERS
        self.limit = min(1 - _RIGHT, (1 - _EXPLAINED) * (1 - self.usual))

    def may_decide(self, column: Column) -> bool:
        if not self.is_worth_it:
            return False
        return bool(self._errors(column, _SCREEN) <= self.limit + _SCREENED)

    def decides(self, column: Column) -> LeakingColumn | None:
        wrong = self._errors(column, len(self.targets))
        if wrong > self.limit:
            return None
        how = (
            f"it is right in {_percent(1 - wrong)} of held-out rows (majority class: "
            f"{_percent(self.usual)})"
        )
        is_code = len(np.unique(column.values)) <= _FEW_VALUES
        return LeakingColumn(column.name, how, is_sure=is_code or wrong <= 1 - _SURELY_RIGHT)

    def _errors(self, column: Column, rows: int) -> float:
        values, targets = column.values[:rows], self.targets[:rows]
        wrong = 0
        for fitted, judged in _halves(len(targets)):
            answers = _usual_answers(values[fitted], targets[fitted])
            predicted = _predicted(*answers, values[judged], ordered=column.ordered)
            wrong += int((predicted != targets[judged]).sum())
        return wrong / len(targets)


class _Numbers:
    """Of targets that are numbers, (rows,)."""

    def __init__(self, targets: Floats) -> None:
        self.targets = targets
        first, third = np.quantile(targets, [0.25, 0.75])
        self.range = float(third - first)

    def may_decide(self, column: Column) -> bool:
        return self.range > 0 and self._fit(column, _SCREEN)[0] >= 1 - 20 * (1 - _R2)

    def decides(self, column: Column) -> LeakingColumn | None:
        r2, error = self._fit(column, len(self.targets))
        if r2 < _R2 or error > _CLOSE * self.range:
            return None
        how = f"R² is {r2:.5f} on held-out rows, with a median absolute error of {error:.3g}"
        return LeakingColumn(column.name, how, is_sure=True)

    def _fit(self, column: Column, rows: int) -> tuple[float, float]:
        """R² and the median absolute error on rows that were not fitted, of the better guess."""
        values, targets = column.values[:rows], self.targets[:rows]
        guesses = (_by_line, _by_neighbours) if column.ordered else (_by_value,)
        return max(_quality(guess, values, targets) for guess in guesses)


def _quality(guess: Guess, values: Floats, targets: Floats) -> tuple[float, float]:
    predicted = np.empty(len(targets))
    for fitted, judged in _halves(len(targets)):
        there = ~np.isnan(values[fitted])
        if there.sum() < 2:
            return 0.0, np.inf
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            answers = guess(values[fitted][there], targets[fitted][there], values[judged])
        predicted[judged] = np.where(np.isfinite(answers), answers, targets[fitted].mean())
    spread = float(((targets - targets.mean()) ** 2).sum())
    residual = np.abs(predicted - targets)
    with np.errstate(over="ignore"):
        r2 = 1 - float((residual**2).sum()) / spread if spread else 0.0
    return r2, float(np.median(residual))


def _by_line(values: Floats, targets: Floats, asked: Floats) -> Floats:
    centre, mean = values.mean(), targets.mean()
    slope = ((values - centre) * (targets - mean)).sum() / ((values - centre) ** 2).sum()
    line: Floats = mean + slope * (asked - centre)
    return line


def _by_neighbours(values: Floats, targets: Floats, asked: Floats) -> Floats:
    known, means = _means(values, targets)
    between: Floats = np.interp(asked, known, means)  # NaN where NaN is asked for
    return between


def _by_value(values: Floats, targets: Floats, asked: Floats) -> Floats:
    known, means = _means(values, targets)
    place = np.searchsorted(known, asked).clip(0, len(known) - 1)
    return np.where(known[place] == asked, means[place], np.nan)


def _halves(rows: int) -> Iterator[tuple[slice, slice]]:
    one, other = slice(0, rows, 2), slice(1, rows, 2)
    yield one, other
    yield other, one


def _usual_answers(values: Floats, targets: Ints) -> tuple[Floats, Ints]:
    """Each value, ascending, NaN last, and the most frequent class of its rows."""
    known, inverse = np.unique(values, return_inverse=True)
    classes = int(targets.max()) + 1
    pairs, counts = np.unique(inverse.reshape(-1) * classes + targets, return_counts=True)
    order = np.lexsort((counts, pairs // classes))
    last = np.flatnonzero(np.diff(pairs[order] // classes, append=-1))
    return known, pairs[order][last] % classes


def _means(values: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Each value, ascending, and the mean target of its rows."""
    known, inverse = np.unique(values, return_inverse=True)
    inverse = inverse.reshape(-1)
    return known, np.bincount(inverse, targets) / np.bincount(inverse)


def _predicted(known: Floats, answers: Ints, asked: Floats, *, ordered: bool) -> Ints:
    """The answer of the same value; of the nearest one if they are ordered; -1 if there is none."""
    has_gaps = bool(len(known)) and bool(np.isnan(known[-1]))
    of_gap = int(answers[-1]) if has_gaps else -1
    real = known[:-1] if has_gaps else known
    if not len(real):
        return np.where(np.isnan(asked), of_gap, -1)
    place = np.searchsorted(real, asked).clip(0, len(real) - 1)
    if ordered:
        before = np.maximum(place - 1, 0)
        with np.errstate(invalid="ignore"):
            nearer = np.abs(real[before] - asked) < np.abs(real[place] - asked)
        predicted = answers[np.where(nearer, before, place)]
    else:
        predicted = np.where(real[place] == asked, answers[place], -1)
    return np.where(np.isnan(asked), of_gap, predicted)


def _percent(share: float) -> str:
    return "100%" if share == 1 else f"{100 * share:.4g}%"

"""How rows are divided where chance would be unfair: by time, or by the group they belong to.

Rows of one patient, customer or machine are alike, and rows of one day too: divided at random, the
validation rows have their likes among the training rows, and the score is one that new patients or
days will not reach.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from trueloop.errors import ConfigError, DataError
from trueloop.folds import FoldNumber, group_folds
from trueloop.tasks.random_split import generator
from trueloop.tasks.table.column_encoding import CellFormat, RowErrors, kind_of, moments, numbers

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

    Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SplitOption:
    """The option `--split`."""

    by: Literal["random", "time", "group"]
    column: str = ""
    """Of a split by time or group."""

    @classmethod
    def parse(cls, text: str) -> SplitOption:
        """`random`, `time:COLUMN` or `group:COLUMN`. Raises `ConfigError`."""
        kind, _, column = text.partition(":")
        if text == "random":
            return cls("random")
        if kind == "time" and column:
            return cls("time", column)
        if kind == "group" and column:
            return cls("group", column)
        why = "names no column" if kind in ("time", "group") else "is unknown"
        raise ConfigError(f"--split {text!r} {why}: write random, time:COLUMN or group:COLUMN")

    def ranks(self, column: pl.Series, reading: CellFormat, errors: RowErrors) -> Ints:
        """The place of each row's value among all values of the column, int64 (rows,) from 0.

        Raises `DataError` for a row without a value and, of a split by time, for a column that has
        no order.
        """
        import polars as pl

        kind = kind_of(column, CellFormat(missing=reading.missing))
        if self.by == "group":
            values = column.cast(pl.String)
        elif kind == "date":
            values = moments(column, reading, errors)
        elif kind == "number":
            values = pl.Series(column.name, numbers(column, reading, errors), nan_to_null=True)
        else:
            raise DataError(
                f"--split time:{self.column}: the column contains neither numbers nor dates "
                "(YYYY-MM-DD), so it has no order in time: convert it, or write --split "
                f"group:{self.column}"
            )
        missing = values.is_null()
        if column.dtype == pl.String:
            missing |= column.str.to_lowercase().is_in(reading.missing)
        RowErrors(strict=True, name=errors.name).add(
            missing.arg_true(),
            lambda k: f"{errors.name(k)} has no value in {self.column!r}, by which --split divides",
            "fill the cell or remove the row",
        )
        return values.rank("dense").to_numpy().astype(np.int64) - 1

    def divide(
        self, ranks: Ints, shares: list[float], seed: int, fold: FoldNumber | None = None
    ) -> list[Ints]:
        """The rows to train on, then those of a part for each share, each in ascending order.

        By time, the first share gets the latest rows, the second those before it, and rows of one
        time stay together. By group, all rows of a group stay together; which part it comes to is
        a function of the seed and the groups' sizes. Every part has one time or group at least,
        and as close to its share of the rows as whole ones come. Raises `DataError`.

        With a `fold`, the last part is that fold of the groups that the parts before it leave.
        """
        if fold is not None:
            rest, *parts = self.divide(ranks, shares[:-1], seed)
            validates = group_folds(ranks[rest], fold.of, seed) == fold.number - 1
            return [rest[~validates], *parts, rest[validates]]
        sizes = np.bincount(ranks)
        if len(sizes) <= len(shares):
            what = "times" if self.by == "time" else "groups"
            raise DataError(
                f"--split {self.by}:{self.column}: the column has {len(sizes)} different values, "
                f"too few {what} for {len(shares) + 1} parts: choose a different column, or write "
                "--test-share 0"
            )
        cut = _by_time if self.by == "time" else _by_group
        part_of = cut(sizes, shares, seed)[ranks]
        return [np.flatnonzero(part_of == part) for part in range(len(shares) + 1)]


def _by_time(sizes: Ints, shares: list[float], seed: int) -> Ints:
    """The part of each time, 0 for training; `sizes` are the rows of each, in order."""
    part_of = np.zeros(len(sizes), dtype=np.int64)
    before = np.concatenate(([0], np.cumsum(sizes)))
    stop = len(sizes)
    for part, share in enumerate(shares, start=1):
        first = 1 + len(shares) - part  # so many times the parts before it need
        starts = np.arange(first, stop)
        held_out = before[stop] - before[starts]
        start = int(starts[np.abs(held_out - share * before[-1]).argmin()])
        part_of[start:stop] = part
        stop = start
    return part_of


def _by_group(sizes: Ints, shares: list[float], seed: int) -> Ints:
    """The part of each group, 0 for training."""
    part_of = np.zeros(len(sizes), dtype=np.int64)
    order = generator(seed, "split by group").permutation(len(sizes))
    for part, share in enumerate(shares, start=1):
        wanted, taken = share * sizes.sum(), 0
        free = [int(group) for group in order if part_of[group] == 0]
        spare = len(free) - (1 + len(shares) - part)  # each part after it, and training, needs one
        chosen: list[int] = []
        for group in free:
            if len(chosen) < spare and abs(taken + sizes[group] - wanted) < abs(taken - wanted):
                chosen.append(group)
                taken += int(sizes[group])
        part_of[chosen or [min(free, key=lambda group: int(sizes[group]))]] = part
    return part_of

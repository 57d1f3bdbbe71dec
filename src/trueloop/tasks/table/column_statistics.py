"""Statistics of one column, added up block by block: what encoder and target are fitted by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueloop.tasks.table.column_encoding import QUARTILES, CategoryColumn, NumberColumn
from trueloop.tasks.table.quantiles import Quantiles

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

    Floats = npt.NDArray[np.float64]
    Mask = npt.NDArray[np.bool_]

MOST_VALUES = 1 << 18
"""Different values of a category column that are counted exactly."""


class NumberStatistics:
    """Of a column of numbers; `single` as `Quantiles` has it."""

    def __init__(self, name: str, *, single: bool) -> None:
        self.name = name
        self.quantiles = Quantiles(QUARTILES, single=single)
        self.gaps = 0
        """Missing values in all rows."""
        self.known = 0
        """Other rows."""
        self._missing = 0
        self._low, self._high = np.inf, -np.inf

    def add(self, values: Floats, train: Mask) -> None:
        """Rows of the first pass: NaN where missing; statistics are of those in `train`."""
        missing = np.isnan(values)
        self.gaps += int(missing.sum())
        self.known += len(values) - int(missing.sum())
        self._missing += int((missing & train).sum())
        chosen = values[train & ~missing]
        if len(chosen):
            self._low = min(self._low, float(chosen.min()))
            self._high = max(self._high, float(chosen.max()))
            self.quantiles.add(chosen)

    def add_again(self, values: Floats, train: Mask) -> None:
        """The same rows in a later pass."""
        chosen = values[train & ~np.isnan(values)]
        if len(chosen):
            self.quantiles.add(chosen)

    def column(self) -> NumberColumn | None:
        """As `NumberColumn.fit` has it."""
        if not self.quantiles.count:
            return None
        first, median, third = self.quantiles.values().tolist()
        five = (self._low, first, median, third, self._high)
        return NumberColumn.of_quantiles(self.name, five, flag=self._missing > 0)


class CategoryStatistics:
    """Of a column of categories.

    Up to `MOST_VALUES` different ones are counted exactly. Beyond, the rare ones are forgotten and
    the others' counts lowered by theirs: the summary of Misra and Gries ("Finding repeated
    elements", 1982), merged as in Agarwal et al. ("Mergeable summaries", PODS 2012).
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.gaps = 0
        """Missing values in all rows."""
        self.known = 0
        """Other rows."""
        self._rows = 0
        self._counts: pl.DataFrame | None = None

    def add(self, texts: pl.Series, train: Mask) -> None:
        """Some rows, null where missing; statistics are of those in `train`."""
        import polars as pl

        self.gaps += texts.null_count()
        self.known += len(texts) - texts.null_count()
        self._rows += int(train.sum())
        chosen = texts.filter(pl.Series(train)).drop_nulls().rename("value")
        found = chosen.value_counts().with_columns(pl.col("count").cast(pl.Int64))
        if self._counts is not None:
            both = pl.concat([self._counts, found])
            found = both.group_by("value").agg(pl.col("count").sum())
        if found.height > MOST_VALUES:
            found = found.sort(["count", "value"], descending=[True, False])
            lowered = found.get_column("count")[MOST_VALUES // 2]
            found = found.with_columns(pl.col("count") - lowered).filter(pl.col("count") > 0)
        self._counts = found

    def column(self) -> CategoryColumn | str:
        """As `CategoryColumn.fit` has it."""
        assert self._counts is not None
        return CategoryColumn.of_counts(self.name, self._counts, self._rows)


class Moments:
    """Mean and standard deviation, in float64: the parts are merged as in Chan, Golub and LeVeque
    ("Updating formulae and a pairwise algorithm for computing sample variances", 1979)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = 0.0
        self._squares = 0.0

    def add(self, values: Floats) -> None:
        if not len(values):
            return
        mean, squares = float(values.mean()), float(np.square(values - values.mean()).sum())
        count = self.count + len(values)
        step = mean - self.mean
        self._squares += squares + step * step * self.count * len(values) / count
        self.mean += step * len(values) / count
        self.count = count

    @property
    def deviation(self) -> float:
        return float(np.sqrt(self._squares / self.count))

"""From the columns of a frame to numbers and category indices, fitted only on the training rows.

A column is one of three kinds. *Numbers*: a missing one takes the training median, and if any was
missing in training, a second input flags it. *Dates* (ISO 8601) become four numbers: days since
1970, month, weekday and hour. Everything else, booleans included, is a *category*, with one index
for what training did not show (or only once) and one for missing. Integers are numbers, unless the
user lists the column as categorical.

Numbers are centred at the median, divided by the interquartile range and softly bounded to (-3, 3):
the "robust scale + smooth clip" of RealMLP (Holzmüller, Grinsztajn and Steinwart, NeurIPS 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueloop.errors import DataError
from trueloop.tasks.table.comma_numbers import refuse_comma_numbers
from trueloop.tasks.table.command_words import option_value

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

    Floats = npt.NDArray[np.float64]

UNKNOWN, MISSING, FIRST = 0, 1, 2
"""Indices of a category column: not known from training, missing, and the first known value."""
MOSTLY = 0.9
"""From this share of numbers on, a text column is numbers with a mistake in it."""
_MOST_VALUES = 1000
_REPEATED = 0.1
_BOUND = 3.0
QUARTILES = (0.25, 0.5, 0.75)
_DATE = r"^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?))?(?:Z|[+-]\d{2}:?\d{2})?$"
DATE_PARTS = ("days", "month", "weekday", "hour")


@dataclass(frozen=True, kw_only=True)
class CellFormat:
    """How cells are to be read: the same in training and ever after."""

    missing: list[str] = field(default_factory=list)
    """Text that means a missing number, in lower case."""
    nan_is_missing: bool = False
    """Whether NaN and infinity count as missing; otherwise they are errors."""
    categorical: list[str] = field(default_factory=list)
    """Columns that are categories although they look like numbers or dates."""


class RowErrors(dict[int, str]):
    """Cells that do not fit: the first reason of each row, by its index from 0.

    A strict one raises `DataError` at the first of them instead; `name` is what a row is called.
    """

    def __init__(
        self, *, strict: bool = False, name: Callable[[int], str] = lambda row: f"row {row + 1}"
    ) -> None:
        super().__init__()
        self.strict = strict
        self.name = name

    def add(self, rows: Iterable[int], reason: Callable[[int], str], remedy: str) -> None:
        """Note rows, each with its reason, or raise the first with the remedy."""
        for row in rows:
            if self.strict:
                raise DataError(f"{reason(row)}: {remedy}")
            if row not in self:
                self[row] = reason(row)

    def nothing_left(self, source: Path | str) -> DataError:
        """The error for a `source` in which every row has one."""
        row = min(self)
        return DataError(
            f"{source} has no row that can be read: {self.name(row)}: {self[row]}: correct the data"
        )


def kind_of(column: pl.Series, reading: CellFormat, *, role: str = "input") -> str:
    """`number`, `date`, `category`, or `empty` where no row has a value, by all of the column's
    cells. Raises `DataError` for anything else."""
    kind = kind_of_type(column.name, column.dtype, reading, role=role)
    if column.null_count() == len(column):
        return "empty"
    if kind is None:
        cells = CellKinds()
        cells.add(column, reading)
        kind = cells.kind()
        if kind == "number":
            column = not_missing(column, reading)
        elif kind == "category":
            refuse_comma_numbers(column.name, not_missing(column, reading), MOSTLY)
    return _number_or_empty(column, reading) if kind == "number" else kind


def kind_of_type(
    name: str, dtype: pl.DataType, reading: CellFormat, *, role: str = "input"
) -> str | None:
    """The kind of a column by its type; None for text, whose cells decide.

    Raises `DataError` for a type that cannot be read.
    """
    import polars as pl

    if dtype.is_nested() or dtype in (pl.Binary, pl.Object, pl.Time):
        other = (
            "choose a different --target"
            if role == "target"
            else f"write --drop {option_value([name])}"
        )
        raise DataError(
            f"column {name!r} is {dtype}, which cannot be read: save it as numbers or text, "
            f"or {other}"
        )
    if dtype == pl.Null:
        return "empty"
    if name in reading.categorical:
        return "category"
    if dtype.is_numeric() or dtype == pl.Duration:
        return "number"
    if dtype.is_temporal():
        return "date"
    return None if dtype == pl.String else "category"


@dataclass
class CellKinds:
    """The kinds of the cells of a column of text, counted piece by piece."""

    cells: int = 0
    """Those that are not missing."""
    numbers: int = 0
    dates: int = 0

    def add(self, column: pl.Series, reading: CellFormat) -> None:
        """Some rows of the column."""
        import polars as pl

        cells = not_missing(column, reading)
        self.cells += len(cells)
        self.numbers += len(cells) - cells.cast(pl.Float64, strict=False).null_count()
        self.dates += int(cells.str.contains(_DATE).sum())

    def kind(self) -> str:
        """`number`, `date`, `category`, or `empty`."""
        if not self.cells:
            return "empty"
        if self.numbers >= MOSTLY * self.cells:
            return "number"
        return "date" if self.dates == self.cells else "category"


def _number_or_empty(column: pl.Series, reading: CellFormat) -> str:
    """`empty` where NaN and infinity count as missing, and there is nothing else."""
    import polars as pl

    if not reading.nan_is_missing or column.dtype == pl.Duration:
        return "number"
    finite = column.cast(pl.Float64, strict=False).is_finite()
    return "number" if finite.any() else "empty"


def not_missing(column: pl.Series, reading: CellFormat) -> pl.Series:
    cells = column.drop_nulls()
    return cells.filter(~cells.str.to_lowercase().is_in(reading.missing))


def numbers(column: pl.Series, reading: CellFormat, errors: RowErrors | None = None) -> Floats:
    """The column as float64, NaN where a number is missing.

    Text among the numbers, and NaN and infinity unless they count as missing, go to `errors` (by
    default they raise `DataError`), and NaN is returned in their place.
    """
    import polars as pl

    errors = RowErrors(strict=True) if errors is None else errors
    name = column.name
    if column.dtype == pl.String:
        missing = column.str.to_lowercase().is_in(reading.missing).fill_null(True)
        values = column.cast(pl.Float64, strict=False)
        bad = values.is_null() & ~missing
        if bad.any():
            cell = column[int(bad.arg_max() or 0)][:40]
            errors.add(
                bad.arg_true(),
                lambda k: (
                    f"column {name!r} contains numbers, but {errors.name(k)} contains "
                    f"{column[k][:40]!r}"
                ),
                f"correct the cell, or train with --drop {option_value([name])}, --categorical "
                f"{option_value([name])} or (if it means missing) --missing {cell!r}",
            )
        values = pl.select(pl.when(~missing).then(values)).to_series()
    elif column.dtype == pl.Duration:
        values = column.dt.total_milliseconds() / 1000
    elif column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        values = column.cast(pl.Float64)
    else:
        raise DataError(
            f"column {name!r} is {column.dtype} where numbers were expected: save it as numbers"
        )
    infinite = ~values.is_finite().fill_null(True)
    if not reading.nan_is_missing and infinite.any():
        errors.add(
            infinite.arg_true(),
            lambda k: f"{errors.name(k)} of column {name!r} is {values[k]}",
            "leave the cell empty if the value is missing, or train with --nan missing",
        )
    array = values.to_numpy().astype(np.float64, copy=True)
    array[~np.isfinite(array)] = np.nan
    return array


def moments(column: pl.Series, reading: CellFormat, errors: RowErrors | None = None) -> pl.Series:
    """A column of dates as `Datetime`, null where missing.

    A time zone is left aside: the moment is that of the clock that was written down. A cell that
    is not a date goes to `errors` (by default it raises `DataError`), and becomes null.
    """
    import polars as pl

    if column.dtype.is_temporal() or column.dtype == pl.Null:
        return column.cast(pl.Datetime("us"))
    if column.dtype != pl.String:
        raise DataError(
            f"column {column.name!r} is {column.dtype} where dates were expected: save it as "
            "dates (YYYY-MM-DD)"
        )
    errors = RowErrors(strict=True) if errors is None else errors
    name = column.name
    day, time = column.str.extract(_DATE, 1), column.str.extract(_DATE, 2).fill_null("00:00")
    full = pl.select(pl.when(time.str.len_bytes() == 5).then(time + ":00").otherwise(time))
    text = day + " " + full.to_series()
    found = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
    missing = column.str.to_lowercase().is_in(reading.missing).fill_null(True)
    bad = found.is_null() & ~missing
    if bad.any():
        errors.add(
            bad.arg_true(),
            lambda k: (
                f"column {name!r} contains dates (YYYY-MM-DD), but {errors.name(k)} contains "
                f"{column[k][:40]!r}"
            ),
            f"correct the cell, or train with --drop {option_value([name])}",
        )
    return found


def date_parts(
    column: pl.Series, reading: CellFormat, errors: RowErrors | None = None
) -> dict[str, Floats]:
    """Days since 1970 (with the time as a fraction), month 1–12, weekday 1–7 and hour 0–23."""
    import polars as pl

    moment = moments(column, reading, errors)
    days = moment.dt.epoch("us") / 86_400_000_000
    parts = (days, moment.dt.month(), moment.dt.weekday(), moment.dt.hour())
    return {
        f"{column.name}: {part}": values.cast(pl.Float64).to_numpy().astype(np.float64, copy=True)
        for part, values in zip(DATE_PARTS, parts, strict=True)
    }


def categories(column: pl.Series, whole: bool | None = None) -> pl.Series:
    """The column as text, null where missing. True and false are written so, whatever the file
    wrote; `whole` says whether floats are written as whole numbers (None: where all are)."""
    import polars as pl

    if column.dtype.is_float() and (all_whole(column) if whole is None else whole):
        texts = column.cast(pl.String)
        integers = column.cast(pl.Int64, strict=False)
        is_whole = column == integers
        column = pl.select(
            pl.when(is_whole.fill_null(False)).then(integers.cast(pl.String)).otherwise(texts)
        ).to_series()
    texts = column.cast(pl.String)
    lower = texts.str.to_lowercase()
    plain = pl.when(lower.is_in(["true", "false"])).then(lower).otherwise(texts)
    return pl.select(plain).to_series()


def all_whole(column: pl.Series) -> bool:
    """Whether no float of the column has a fraction."""
    known = column.drop_nulls()
    return bool((known == known.round()).all())


@dataclass
class ParsedColumns:
    """The columns read but not yet fitted: text and numbers with gaps."""

    numbers: dict[str, Floats]
    """Float64 (rows,), NaN where missing."""
    categories: dict[str, pl.Series]
    """Text, null where missing."""


def read_columns(
    frame: pl.DataFrame,
    kinds: dict[str, str],
    reading: CellFormat,
    errors: RowErrors | None = None,
    whole: Mapping[str, bool] | None = None,
) -> ParsedColumns:
    """The columns of `kinds` read as what they are; `whole` is that of `categories`, by column.

    Raises `DataError` for absent columns; cells that do not fit go to `errors` (by default they
    raise too).
    """
    check_columns_there(kinds, frame.columns)
    raw = ParsedColumns({}, {})
    for name, kind in kinds.items():
        column = frame.get_column(name)
        if kind == "number":
            raw.numbers[name] = numbers(column, reading, errors)
        elif kind == "date":
            raw.numbers |= date_parts(column, reading, errors)
        else:
            raw.categories[name] = categories(column, (whole or {}).get(name))
    return raw


def check_columns_there(needed: Iterable[str], columns: Iterable[str]) -> None:
    """Raise `DataError` for a column that the model needs and that is not among `columns`."""
    there = set(columns)
    absent = [name for name in needed if name not in there]
    if absent:
        raise DataError(
            f"column {absent[0]!r} is missing, and the model needs it: add it (empty cells count "
            "as missing)"
        )


@dataclass
class NumberColumn:
    """How one column of numbers enters the model."""

    name: str
    median: float
    scale: float
    flag: bool
    """Whether a second input says that the number was missing."""

    @classmethod
    def fit(cls, name: str, values: Floats) -> NumberColumn | None:
        """Fitted on the training rows; None if the column is constant there."""
        known = values[~np.isnan(values)]
        flag = len(known) < len(values)
        if len(known) == 0:
            return None
        low, first, median, third, high = np.quantile(known, [0, *QUARTILES, 1]).tolist()
        return cls.of_quantiles(name, (low, first, median, third, high), flag=flag)

    @classmethod
    def of_quantiles(
        cls, name: str, quantiles: tuple[float, float, float, float, float], *, flag: bool
    ) -> NumberColumn | None:
        """`fit`, from the least value, the quartiles and the largest; `flag` says whether any was
        missing."""
        low, first, median, third, high = quantiles
        scale = third - first or (high - low) / 2
        if not scale > 0:
            if not flag:
                return None
            scale = 1.0
        return cls(name, median, scale, flag)

    def encode(self, values: Floats) -> list[Floats]:
        gaps = np.isnan(values)
        with np.errstate(over="ignore"):
            z = (np.where(gaps, self.median, values) - self.median) / self.scale
        # Beyond this the bound is reached to the last digit, and the square below stays finite.
        z = z.clip(-1e9, 1e9)
        bounded = z / np.sqrt(1.0 + (z / _BOUND) ** 2)
        return [bounded, gaps.astype(np.float64)] if self.flag else [bounded]


@dataclass
class CategoryColumn:
    """How one column of categories enters the model."""

    name: str
    values: list[str]
    """The known values; their indices count from `FIRST`."""

    @classmethod
    def fit(cls, name: str, texts: pl.Series) -> CategoryColumn | str:
        """Fitted on the training rows; or the reason why the column is of no use.

        A value that training shows once is as good as unknown: it teaches the index for those.
        """
        counts = texts.drop_nulls().rename("value").value_counts()
        return cls.of_counts(name, counts, len(texts))

    @classmethod
    def of_counts(cls, name: str, counts: pl.DataFrame, rows: int) -> CategoryColumn | str:
        """`fit`, from how often each `value` comes (`count`) in so many rows."""
        present = int(counts.get_column("count").sum())
        if counts.height < 2 and present == rows:
            return "the same value in every row"
        counts = counts.sort(["count", "value"], descending=[True, False])
        repeated = counts.filter(counts.get_column("count") >= 2).head(_MOST_VALUES)
        if repeated.get_column("count").sum() < _REPEATED * present:
            return "(almost) every row has a different value"
        return cls(name, sorted(repeated.get_column("value").to_list()))

    def encode(self, texts: pl.Series) -> npt.NDArray[np.int64]:
        import polars as pl

        indices = texts.replace_strict(
            self.values,
            list(range(FIRST, FIRST + len(self.values))),
            default=UNKNOWN,
            return_dtype=pl.Int64,
        )
        missing = texts.is_null().to_numpy()
        return np.where(missing, MISSING, indices.fill_null(UNKNOWN).to_numpy())

    @property
    def is_whole(self) -> bool:
        """Whether floats of this column are written as whole numbers, by the values known."""
        return not any("." in value for value in self.values)

    @property
    def size(self) -> int:
        """How many indices there are."""
        return FIRST + len(self.values)


@dataclass
class TableEncoder:
    """All columns of a table together."""

    numbers: list[NumberColumn]
    categories: list[CategoryColumn]
    dropped: dict[str, str]
    """Columns that training made no use of, and why."""

    @classmethod
    def fit(cls, raw: ParsedColumns, rows: npt.NDArray[np.int64]) -> TableEncoder:
        """Fitted only on the given rows."""
        encoder = cls([], [], {})
        for name, values in raw.numbers.items():
            number = NumberColumn.fit(name, values[rows])
            if number is None:
                encoder.dropped[name] = "the same value in every row"
            else:
                encoder.numbers.append(number)
        for name, texts in raw.categories.items():
            category = CategoryColumn.fit(name, texts.gather(rows))
            if isinstance(category, str):
                encoder.dropped[name] = category
            else:
                encoder.categories.append(category)
        return encoder

    def encode(self, raw: ParsedColumns) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Numbers, float32 (rows, inputs), and category indices, int64 (rows, columns)."""
        rows = len(next(iter((raw.numbers | raw.categories).values())))
        floats = np.empty((rows, self.inputs), dtype=np.float32)
        parts = [part for c in self.numbers for part in c.encode(raw.numbers[c.name])]
        for k, part in enumerate(parts):
            floats[:, k] = part
        indices = np.empty((rows, len(self.categories)), dtype=np.int64)
        for k, column in enumerate(self.categories):
            indices[:, k] = column.encode(raw.categories[column.name])
        return floats, indices

    @property
    def whole(self) -> dict[str, bool]:
        """Of each category column, whether floats are written as whole numbers."""
        return {column.name: column.is_whole for column in self.categories}

    @property
    def inputs(self) -> int:
        """How many numbers a row has after encoding."""
        return sum(2 if column.flag else 1 for column in self.numbers)

    @property
    def sizes(self) -> list[int]:
        """How many indices each category column has."""
        return [column.size for column in self.categories]

    def state(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableEncoder:
        return cls(
            [NumberColumn(**column) for column in state["numbers"]],
            [CategoryColumn(**column) for column in state["categories"]],
            dict(state["dropped"]),
        )

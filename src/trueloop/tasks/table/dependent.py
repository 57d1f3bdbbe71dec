"""Whether rows that are to be divided at random depend on each other: by time, or by a group."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trueloop.errors import DataError
from trueloop.tasks.data_findings import DataFinding
from trueloop.tasks.table.column_encoding import (
    CellFormat,
    RowErrors,
    kind_of,
    moments,
    not_missing,
    numbers,
)

if TYPE_CHECKING:
    import polars as pl

    Kind = tuple[pl.Series, str | None]
    """A column and its content; None for one that cannot be read."""

_FEWEST_VALUES = 10
"""Different times or groups: with fewer, a column is one of the few categories of a survey."""
_LARGEST_GROUP = 0.5
"""Share of the rows above which a value is not one group among many."""
_WHO = "patient|subject|participant|customer|client|user|session|household|family|author|speaker"
_NAME_OF_GROUP = re.compile(
    rf"^(?:{_WHO})s?$|(?:^|[_\W])(?:id|uuid|guid|key|number|nr|no)$|[a-z](?:Id|ID)$", re.I
)
_NAME_OF_TIME = re.compile(r"(?:^|[_\W])(?:year|date|datetime|time|timestamp|month|day)$", re.I)
_OF_A_PERSON = re.compile(r"birth|born|dob", re.I)


def dependent_rows(
    frame: pl.DataFrame, target: str, reading: CellFormat, kinds: Mapping[str, str]
) -> list[DataFinding]:
    """A finding on the first column that orders the rows in time, and on the first that groups
    them.

    `frame` has the rows in the order of the file, dropped columns included; `kinds` are those of
    the columns that are inputs.
    """
    columns = [
        (frame.get_column(name), kinds.get(name) or _kind(frame.get_column(name), reading))
        for name in frame.columns
        if name != target
    ]
    found = (next(_ordered(columns, reading), None), next(_grouped(columns, reading), None))
    return [finding for finding in found if finding is not None]


def _ordered(columns: list[Kind], reading: CellFormat) -> Iterator[DataFinding]:
    for column, kind in columns:
        span = _span(column, kind, reading)
        if span is not None:
            name = column.name
            yield DataFinding(
                code="TL718",
                severity="advice",
                subject=f"column {name!r}",
                message=f"Column {name!r} orders the rows in time ({span}), but they are split at "
                "random: validation rows are between training rows, and later rows may score "
                "lower.",
                fix=f"{_first(column, reading)}--split {shlex.quote(f'time:{name}')}, "
                "unless later rows are never to be predicted.",
            )


def _span(column: pl.Series, kind: str | None, reading: CellFormat) -> str | None:
    """The first and the last time of a column of times, in words; None for any other column."""
    import polars as pl

    if kind == "date" and not _OF_A_PERSON.search(column.name):
        times = moments(column, reading, RowErrors()).drop_nulls()
        if times.n_unique() < _FEWEST_VALUES:
            return None
        ends = pl.Series([times.min(), times.max()], dtype=times.dtype).dt.strftime("%Y-%m-%d")
    elif kind == "number" and _NAME_OF_TIME.search(column.name):
        values = numbers(column, reading, RowErrors())
        times = pl.Series(column.name, values, nan_to_null=True).drop_nulls()
        if not times.is_sorted():
            return None  # a year of construction: only the order of the file says that it is time
        if times.n_unique() < _FEWEST_VALUES:
            return None
        ends = pl.Series([f"{value:.15g}" for value in (times[0], times[-1])])
    else:
        return None
    return f"{ends[0]} to {ends[1]}"


def _first(column: pl.Series, reading: CellFormat) -> str:
    """How the remedy begins: to divide the rows by a column, each needs a value in it."""
    import polars as pl

    text = column.dtype == pl.String
    gaps = len(column) - len(not_missing(column, reading)) if text else column.null_count()
    if not gaps:
        return "Write "
    return f"Fill the empty cells of the column ({gaps:,}) or remove their rows, then write "


def _grouped(columns: list[Kind], reading: CellFormat) -> Iterator[DataFinding]:
    for column, kind in columns:
        name = column.name
        if kind not in ("number", "category") or not _NAME_OF_GROUP.search(name):
            continue
        counts = column.drop_nulls().value_counts().get_column("count")
        several = int((counts >= 2).sum())
        largest = counts.max()
        assert largest is None or isinstance(largest, int)
        if several < _FEWEST_VALUES or 2 * several < len(counts):
            continue
        if (largest or 0) > _LARGEST_GROUP * len(column):
            continue
        yield DataFinding(
            code="TL718",
            severity="advice",
            subject=f"column {name!r}",
            message=f"Column {name!r} groups the rows ({len(counts):,} groups, "
            f"{counts.sum() / len(counts):.3g} rows each on average), and they are divided at "
            "random: the model is scored on groups that it was trained on, and may score lower on "
            "new ones.",
            fix=f"{_first(column, reading)}--split {shlex.quote(f'group:{name}')}, "
            "unless new groups are never to be predicted.",
        )


def _kind(column: pl.Series, reading: CellFormat) -> str | None:
    """The column's kind, also of one that is dropped because it cannot be read: None."""
    try:
        return kind_of(column, CellFormat(missing=reading.missing))
    except DataError:
        return None

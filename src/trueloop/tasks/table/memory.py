"""Tables in the program's memory, as frames: taken by `Run.predict` beside a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trueloop.errors import DataError

if TYPE_CHECKING:
    import polars as pl


def frame_of(data: Any) -> pl.DataFrame:
    """A polars or pandas data frame, a mapping of columns, or a list of rows that are mappings.

    Values that pandas counts as missing become null. Raises `DataError` for anything else, and
    for a frame without rows.
    """
    import polars as pl

    if isinstance(data, pl.LazyFrame):
        data = data.collect()
    if hasattr(data, "isna") and hasattr(data, "columns"):
        data = _columns_of_pandas(data)
    rows = isinstance(data, (list, tuple)) and all(isinstance(row, Mapping) for row in data)
    if not (rows or isinstance(data, (pl.DataFrame, Mapping))):
        raise DataError(
            f"the rows to predict are a {type(data).__name__}: give a data frame, a dict of "
            "columns, a list of rows that are dicts, or the path of a CSV or Parquet file"
        )
    try:
        # All rows decide a column's type, not the first hundred.
        frame = data if isinstance(data, pl.DataFrame) else _built(data, rows)
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DataError(
            f"these rows are not a table ({reason}): give each column values of one kind, and all "
            "columns the same number"
        ) from None
    if not frame.height:
        raise DataError("the table of rows to predict is empty: give at least one")
    return frame


def _built(data: Any, rows: bool) -> pl.DataFrame:
    import polars as pl

    if rows:
        return pl.DataFrame([dict(row) for row in data], strict=False, infer_schema_length=None)
    columns = {str(name): values for name, values in data.items()}
    return pl.DataFrame(columns, strict=False)


def _columns_of_pandas(data: Any) -> dict[str, list[Any]]:
    names = [str(name) for name in data.columns]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise DataError(f"the frame has more than one column called {twice[0]!r}: rename one")
    columns = {}
    for name, label in zip(names, data.columns, strict=True):
        column = data[label]
        pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
        columns[name] = [None if missing else value for value, missing in pairs]
    return columns

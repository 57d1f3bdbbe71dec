"""Numbers with a comma, which would be taken for text: `4,43` and `1,234.5`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueloop.errors import DataError
from trueloop.tasks.table.command_words import option_value

if TYPE_CHECKING:
    import polars as pl

_COMMA = r"^[+-]?(?:\d+,\d+|\d{1,3}(?:[.' ]\d{3})+,\d+|\d{1,3}(?:,\d{3})+(?:\.\d+)?)$"


def refuse_comma_numbers(name: str, cells: pl.Series, share: float) -> None:
    """Raise `DataError` if at least this share of the cells of a column are numbers, some of them
    with a comma."""
    import polars as pl

    commas = cells.str.contains(_COMMA)
    plain = len(cells) - cells.cast(pl.Float64, strict=False).null_count()
    if commas.any() and int(commas.sum()) + plain >= share * len(cells):
        raise DataError(
            f"column {name!r} contains numbers with a comma, such as {cells.filter(commas)[0]!r}: "
            "write them with a decimal point and nothing between thousands, or if they are names, "
            f"train with --categorical {option_value([name])}"
        )

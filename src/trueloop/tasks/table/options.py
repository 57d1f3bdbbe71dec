"""The options of the table task."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trueloop.option import option
from trueloop.tasks.option_docs import documented


@documented
@dataclass(kw_only=True)
class TableOptions:
    """Options of the table task."""

    target: str = option("", usual=True, group="columns", required=True)
    """The column to predict."""
    drop: list[str] = option([], usual=True)
    """Columns to ignore."""
    kind: str = option("auto", usual=True, choices=("auto", "classification", "regression"))
    """Kind of task. auto is classification for text, booleans, whole numbers with at most 20
    different values, and any column with two."""
    categorical: list[str] = option([])
    """Columns of numbers or dates that are categories, such as codes."""
    missing: list[str] = option(["NA", "N/A", "null", "None"])
    """Text that means a missing number; an empty cell always does."""
    nan: str = option("stop", choices=("stop", "missing"))
    """How to treat NaN and infinity in numeric columns: stop (an error), or missing."""
    split: str = option(
        "random", usual=True, group="rows", choices=("random", "time:COLUMN", "group:COLUMN")
    )
    """How to split the rows. random is stratified by class; time:COLUMN holds the latest rows out;
    with group:COLUMN no group is in two parts, and the column is not an input."""
    val_share: float = option(0.15, usual=True)
    """Share of the rows for validation. It chooses the best epoch."""
    test_share: float = option(0.15, usual=True)
    """Share of the rows for the test. It is scored once, at the end; 0 for none."""
    val_data: Path | None = option(None)
    """File with the validation rows, in place of a share of --data."""
    test_data: Path | None = option(None)
    """File with the test rows, in place of a share of --data."""
    log_target: bool = option(False, group="network")
    """Train a regression on the logarithm of the target. For targets of many magnitudes."""
    quantiles: list[float] = option([])
    """Quantiles that a regression predicts, such as 0.05,0.5,0.95: an interval beside the
    prediction. None by default."""
    width: int = option(256, unit="units")
    """Width of a hidden layer."""
    layers: int = option(3)
    """Hidden layers."""
    streaming: str = option("auto", group="rows", choices=("auto", "always", "never"))
    """Whether rows of Parquet stay on disk and are read when needed; auto does so if they would
    take much memory."""
    dropout: float | None = option(None, group="network", unset="by the number of rows")
    """Dropout probability of the hidden units."""

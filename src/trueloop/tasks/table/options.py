"""The options of the table task."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trueloop.tasks.option_docs import documented


@documented
@dataclass(kw_only=True)
class TableOptions:
    """Options of the table task."""

    target: str = ""
    """The column to predict."""
    drop: list[str] = field(default_factory=list)
    """Columns to ignore."""
    kind: str = "auto"
    """classification, regression, or auto: classification for text, booleans, whole numbers
    with at most 20 different values, and any column with two."""
    categorical: list[str] = field(default_factory=list)
    """Numeric or date columns to treat as categories, such as codes."""
    missing: list[str] = field(default_factory=lambda: ["NA", "N/A", "null", "None"])
    """Text that means a missing number; an empty cell always does."""
    nan: str = "stop"
    """How to treat NaN and infinity in numeric columns: stop (an error), or missing."""
    split: str = "random"
    """How to split the rows: random (stratified by class), time:COLUMN (the latest rows are held
    out) or group:COLUMN (no group is in two parts, and the column is not an input)."""
    val_share: float = 0.15
    """Share of the rows for validation, which chooses the best epoch."""
    test_share: float = 0.15
    """Share of the rows held out as a test set, scored once at the end; 0 for none."""
    val_data: Path | None = None
    """File with the validation rows, in place of a share of --data."""
    test_data: Path | None = None
    """File with the test rows, in place of a share of --data."""
    log_target: bool = False
    """Train a regression on the logarithm of the target, for targets of many magnitudes."""
    width: int = 256
    """Units of a hidden layer."""
    layers: int = 3
    """Hidden layers."""
    streaming: str = "auto"
    """Whether rows of Parquet stay on disk and are read when needed: always, never, or auto, which
    does so if they would take much memory."""
    dropout: float | None = None
    """Dropout probability of the hidden units; null chooses by the number of rows."""

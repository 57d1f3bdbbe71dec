"""A run's description of its table: sizes, columns, omissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.tasks.table.checked_options import PART_NAMES

if TYPE_CHECKING:
    from trueloop.tasks.table.column_encoding import TableEncoder
    from trueloop.tasks.table.options import TableOptions


def table_facts(
    options: TableOptions,
    data: Path | None,
    encoder: TableEncoder,
    *,
    rows: Mapping[str, int],
    gaps: Mapping[str, int],
    without: int,
    classes: Sequence[str] | None,
    class_rows: Sequence[int],
) -> dict[str, Any]:
    """For `Splits.facts`: `rows` of each part, `gaps` of each column, the rows `without` a target,
    and those of each class."""
    facts: dict[str, Any] = {
        "file": str(data),
        "target": options.target,
        "rows": dict(rows),
        "split": options.split,
        "number columns": [column.name for column in encoder.numbers],
        "category columns": {c.name: len(c.values) for c in encoder.categories},
    }
    for name, path in (("val", options.val_data), ("test", options.test_data)):
        if path is not None:
            facts[f"{PART_NAMES[name]} file"] = str(path)
    if options.drop:
        facts["dropped as asked"] = list(options.drop)
    if encoder.dropped:
        facts["left out"] = encoder.dropped
    if without:
        facts["rows without a target, dropped"] = without
    if any(gaps.values()):
        facts["missing values"] = {name: count for name, count in gaps.items() if count}
    if classes is not None:
        facts["rows of each class"] = dict(zip(classes, class_rows, strict=True))
    return facts

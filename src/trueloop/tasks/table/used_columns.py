"""Which columns of a table a model makes use of: no others need to be in new data."""

from __future__ import annotations

from collections.abc import Mapping

from trueloop.tasks.table.column_encoding import TableEncoder


def used_columns(encoder: TableEncoder, kinds: Mapping[str, str]) -> dict[str, str]:
    """Those of the columns of `kinds` that are inputs of the network, with their kinds."""
    names = {each.name for each in encoder.numbers} | {each.name for each in encoder.categories}
    dates = {name.rpartition(": ")[0] for name in names}
    return {
        name: kind for name, kind in kinds.items() if name in (dates if kind == "date" else names)
    }

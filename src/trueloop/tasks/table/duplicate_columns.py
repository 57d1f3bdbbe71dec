"""Duplicate columns of a table: equal, or in a different unit or encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trueloop.tasks.table.leakage import Column

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

_FEWEST_ELSEWHERE = 20
"""Rows without a column's most frequent value: with fewer, two columns agree by chance."""
_PER_VALUE = 5
"""Rows per value from which on equal partitions of the rows mean equal columns: where each row has
a different value, any two columns divide the rows alike."""
_EQUAL = 1e-6


def groups_of_equals(columns: list[Column]) -> list[list[str]]:
    """The names of columns that are the same in all rows, in groups of two or more."""
    few: dict[bytes, list[str]] = {}
    many: list[tuple[float, bytes, Floats, str]] = []
    rows = len(columns[0].values) if columns else 0
    draws = np.random.default_rng(0).standard_normal(rows)
    for column in columns:
        _, first, inverse, counts = np.unique(
            column.values, return_index=True, return_inverse=True, return_counts=True
        )
        if rows - counts.max() < _FEWEST_ELSEWHERE:
            continue
        if len(counts) * _PER_VALUE <= rows:
            order = np.empty(len(first), dtype=np.int32)
            order[np.argsort(first)] = np.arange(len(first))
            few.setdefault(order[inverse.reshape(-1)].tobytes(), []).append(column.name)
        elif column.ordered and (z := _standardised(column.values)) is not None:
            gaps = np.isnan(column.values).tobytes()
            many.append((abs(float(z @ draws)), gaps, z, column.name))
    groups = [names for names in few.values() if len(names) > 1] + _linear(many)
    place = {column.name: k for k, column in enumerate(columns)}
    return sorted(groups, key=lambda names: place[names[0]])


def _standardised(values: Floats) -> Floats | None:
    """Mean 0 and deviation 1, gaps at 0; the same for all units, but for the sign."""
    there = values[~np.isnan(values)]
    with np.errstate(over="ignore", invalid="ignore"):
        deviation = there.std()
        z: Floats = (values - there.mean()) / deviation
    if not deviation > 0 or not np.isfinite(deviation):
        return None
    z[np.isnan(z)] = 0.0
    return z


def _linear(many: list[tuple[float, bytes, Floats, str]]) -> list[list[str]]:
    """Groups among columns of many values, found by a random projection that equal ones share."""
    groups: list[list[str]] = []
    heads: list[tuple[float, bytes, Floats]] = []
    place = {each[3]: k for k, each in enumerate(many)}
    for projection, gaps, z, name in sorted(many, key=lambda each: each[0]):
        tolerance = _EQUAL * np.sqrt(len(z))
        if heads and projection - heads[-1][0] <= tolerance and gaps == heads[-1][1]:
            head = heads[-1][2]
            sign = 1.0 if float(z @ head) > 0 else -1.0
            if np.abs(z - sign * head).max() <= _EQUAL:
                groups[-1].append(name)
                continue
        heads.append((projection, gaps, z))
        groups.append([name])
    return [sorted(names, key=place.__getitem__) for names in groups if len(names) > 1]

"""The report's tables of classes: confusion matrix, scores of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trueloop.formatting import number, percent
from trueloop.run import charts
from trueloop.run.html_page import Chart

_TABLE_CLASSES = 20
"""A confusion matrix of more classes is drawn as a heat map, and its table left to the machine."""
_MAP_CLASSES = 200


def confusion_of(results: Mapping[str, Any]) -> dict[str, Any] | None:
    """The matrix as a table of shaded cells, or as a heat map; and the most frequent mix-ups."""
    matrix = results.get("confusion")
    if not matrix:
        return None
    names = class_names(results, len(matrix))
    rows = []
    for k, row in enumerate(matrix):
        total = sum(row)
        shares = [count / total if total else 0.0 for count in row]
        cells = [_cell(count, shares[j], j == k) for j, count in enumerate(row)]
        rows.append({"name": names[k], "cells": cells})
    chart = None
    if _TABLE_CLASSES < len(matrix) <= _MAP_CLASSES:
        chart = Chart("confusion", "Confusion matrix", charts.confusion(matrix, names), wide=True)
    return {
        "names": names,
        "rows": rows if len(matrix) <= _TABLE_CLASSES else [],
        "chart": chart,
        "upright": len(names) > 6 and max(map(len, names)) > 5,
        "pairs": _mixed_up(matrix, names) if len(matrix) > 2 else [],
    }


def _cell(count: float, share: float, hit: bool) -> dict[str, str]:
    """A cell of the matrix: blue where the prediction hits, orange where it misses."""
    look = ["hit"] * hit + ["none"] * (count == 0)
    # Misses are rare: a root makes 1% visible without making 20% shout.
    shade = 100 * (share if hit else share**0.5)
    return {
        "count": f"{int(count):,}",
        "text": percent(share),
        "look": " ".join(look),
        "shade": f"{shade:.0f}",
    }


def per_class(results: Mapping[str, Any]) -> list[dict[str, str]]:
    """The scores of each class, as a table shows them."""
    return [
        {
            "name": str(row["name"]),
            **{key: number(row.get(key)) for key in ("precision", "recall", "f1")},
            "support": f"{row['support']:,.0f}" if row.get("support") is not None else "–",
        }
        for row in results.get("per_class") or []
    ]


def class_names(results: Mapping[str, Any], count: int) -> list[str]:
    """The classes' names; their numbers if there are none that fit."""
    names = results.get("classes")
    return (
        [str(n) for n in names] if names and len(names) == count else list(map(str, range(count)))
    )


def _mixed_up(matrix: Sequence[Sequence[int]], names: Sequence[str]) -> list[dict[str, str]]:
    """The five most frequent confusions."""
    found = [
        (count, i, j)
        for i, row in enumerate(matrix)
        for j, count in enumerate(row)
        if i != j and count
    ]
    found.sort(key=lambda pair: -pair[0])
    return [
        {
            "count": f"{int(count):,}",
            "true": names[i],
            "predicted": names[j],
            "share": percent(count / sum(matrix[i])),
        }
        for count, i, j in found[:5]
    ]

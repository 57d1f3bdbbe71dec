"""Prediction intervals of a regression, as the report shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueloop.formatting import number, percent
from trueloop.run import charts
from trueloop.run.html_page import Chart, Section


def intervals(results: Mapping[str, Any]) -> Section:
    """The intervals of validation samples with their targets; without charts where the run has
    none."""
    found = results.get("intervals")
    section = Section("Prediction intervals")
    if not found:
        return section
    names = ("low", "high", "prediction", "target")
    low, high, prediction, target = (np.array(found[name], dtype=np.float64) for name in names)
    if len(target) < 2:
        return section
    covered, width = (results["scores"].get(f"val_{name}") for name in ("coverage", "width"))
    if covered is not None and width is not None:
        section.note = (
            f"The {percent(found['share'])} interval contains {percent(covered)} of the "
            f"{found['samples']:,} validation targets (coverage); its mean width is "
            f"{number(width)}."
        )
    at = np.arange(1.0, len(target) + 1)
    inside = (low <= target) & (target <= high)
    bars = {
        "type": "scatter", "mode": "markers", "name": "prediction and interval",
        "x": charts.clean(at), "y": charts.clean(prediction),
        "marker": {"color": "@faint", "symbol": "line-ew-open", "size": 6},
        "error_y": {
            "type": "data", "symmetric": False, "array": charts.clean(high - prediction),
            "arrayminus": charts.clean(prediction - low), "color": "@faint", "width": 0,
            "thickness": 1.5,
        },
    }  # fmt: skip
    marks = [
        {
            "type": "scatter", "mode": "markers", "name": name, "x": charts.clean(at[chosen]),
            "y": charts.clean(target[chosen]),
            "marker": {"color": colour, "symbol": symbol, "size": 6},
        }
        for name, chosen, colour, symbol in (
            ("target inside", inside, "@val", "circle"),
            ("target outside", ~inside, "@bad", "x"),
        )
    ]  # fmt: skip
    figure = charts.figure(
        [bars, *marks], "validation samples, sorted by their predictions", "value"
    )
    figure["layout"].update(hovermode="closest")
    shown = (
        "" if len(target) == found["samples"] else f"{len(target):,} of the samples, evenly picked."
    )
    section.charts.append(Chart("intervals", "Intervals and targets", figure, shown))
    return section

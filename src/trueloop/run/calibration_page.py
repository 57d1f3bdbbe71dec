"""How far a classifier's probabilities can be trusted, as the report shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueloop.formatting import number, percent, score_name
from trueloop.run import charts
from trueloop.run.html_page import Chart, Section


def calibration(results: Mapping[str, Any]) -> Section:
    """The reliability diagram, and the temperature and thresholds in words; without charts where
    the run has none."""
    found = results.get("calibration")
    section = Section("Calibration")
    if not isinstance(found, Mapping):
        return section
    before, after = found["before"], found["after"]
    section.note = (
        f"Confidence and truth differ by {percent(before['ece'])} on average (expected calibration "
        f"error of validation samples), and by {percent(after['ece'])} with logits divided by the "
        f"temperature {number(found['temperature'])}, which was fitted to the same samples. "
        "trueloop predict --calibrated applies it."
    )
    for metric, best in (found.get("thresholds") or {}).items():
        section.note += (
            f" The threshold {number(best['threshold'])} gives the best {score_name(metric)}, "
            f"{number(best['score'])}."
        )
    ends = np.array([0.0, 1.0])
    traces = [charts.series(ends, ends, "perfect", "@faint", dash="dash", width=1.5)]
    for name, part, colour in (("as trained", before, "@train"), ("calibrated", after, "@val")):
        x, y = (np.array([each[key] for each in part["bins"]]) for key in ("confidence", "correct"))
        traces.append(charts.series(x, y, name, colour) | {"mode": "lines+markers"})
    figure = charts.figure(traces, "probability", "share that came true")
    figure["layout"].update(hovermode="closest")
    section.charts.append(
        Chart("reliability", "Reliability diagram", figure, "Trusted ones are on the line.")
    )
    return section

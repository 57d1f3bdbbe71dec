"""How far a classifier's probabilities can be trusted, as the report shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from trueloop.formatting import number, percent, score_name
from trueloop.run import charts
from trueloop.run.html_page import Chart, Section

_CAPTION = (
    "How often predictions of a probability were right. Of a calibrated model, 80% of those with "
    "probability 0.8 are: on the dashed line. Below it the model is too sure, above it not enough."
)


def calibration(results: Mapping[str, Any]) -> Section:
    """The reliability diagram, and the temperature and thresholds in words; without charts where
    the run has none."""
    found = results.get("calibration")
    section = Section("Calibration")
    if not isinstance(found, Mapping):
        return section
    before, after = found["before"], found["after"]
    section.note = (
        f"Expected calibration error on the validation samples: {percent(before['ece'])} as "
        f"trained, {percent(after['ece'])} with temperature scaling (logits divided by "
        f"{number(found['temperature'])}, fitted to the same samples). "
        "trueloop predict --calibrated applies the temperature."
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
    figure = charts.figure(traces, "predicted probability", "observed share")
    figure["layout"].update(hovermode="closest")
    section.charts.append(Chart("reliability", "Reliability diagram", figure, _CAPTION))
    return section

"""Prediction intervals among the results of a run: for the report's chart and the last words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from trueloop.formatting import percent
from trueloop.tasks import Task

MOST_INTERVALS = 200
"""In the chart; more would be drawn over each other."""


def intervals_of(task: Task, outputs: Tensor, targets: Tensor) -> dict[str, Any] | None:
    """The intervals of at most 200 samples of a split, evenly picked in the order of their
    predictions; None for a task without intervals."""
    found = task.interval(outputs)
    if found is None:
        return None
    low, high, share = found
    point, target = task.point_outputs(outputs).flatten(), targets.flatten()
    order = point.argsort(stable=True)
    if len(order) > MOST_INTERVALS:
        order = order[torch.linspace(0, len(order) - 1, MOST_INTERVALS).round().long()]
    columns = {"low": low, "high": high, "prediction": point, "target": target}
    picked = {name: values.flatten().double()[order].tolist() for name, values in columns.items()}
    return {"share": share, "samples": len(point), **picked}


def coverage_line(results: Mapping[str, Any]) -> str | None:
    """How many targets are in the interval, by split; None without intervals."""
    intervals = results.get("intervals")
    if not intervals:
        return None
    scores, test = results.get("scores") or {}, results.get("test_scores") or {}
    shares = {"validation": scores.get("val_coverage"), "test": test.get("coverage")}
    known = {name: share for name, share in shares.items() if share is not None}
    shown = ", ".join(f"{percent(share)} of the {name} targets" for name, share in known.items())
    return f"the {percent(intervals['share'])} interval has {shown}" if shown else None

"""The pictures of a tuning: the range test's curve, and throughput and memory by batch size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from trueloop.tune.range_test import RangeTest, number
from trueloop.tune.results import BatchSizeResult, TuningResults

# Paul Tol's "high contrast" scheme, as the ready-made tasks have it.
_BLUE, _YELLOW, _RED, _GREY = "#004488", "#DDAA33", "#BB5566", "#8b929e"
_INCHES = (7.0, 4.2)
_DPI = 130


def draw(findings: TuningResults, rates: Path, batches: Path) -> list[Path]:
    """Draw what there is to draw; the files that were written."""
    drawn = []
    tests = [("", findings.range_test)] if findings.range_test else []
    if findings.range_test_of_batch:
        size, test = findings.range_test_of_batch
        tests.append((f" with batch size {size:,}", test))
    if tests:
        draw_range_tests(tests, rates, float(findings.facts.options["lr"]))
        drawn.append(rates)
    points = [point for point in findings.points if point.measured is not None]
    if len(points) > 1:
        draw_batches(points, batches)
        drawn.append(batches)
    return drawn


def draw_range_tests(tests: list[tuple[str, RangeTest]], path: Path, own: float | None) -> None:
    """One curve under the other, over the same rates: the loss, where it falls fastest, what is
    suggested, and the user's own rate."""
    figure = _figure(len(tests))
    axes = figure.subplots(len(tests), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (name, test) in zip(axes, tests, strict=True):
        _draw_range_test(axis, test, own)
        axis.set_title(f"Learning-rate range test{name}", loc="left", fontsize=11)
    axes[-1].set_xlabel("learning rate")
    _save(figure, path)


def _draw_range_test(axis: Any, test: RangeTest, own: float | None) -> None:
    rates, losses, curve = (np.array(v) for v in (test.rates, test.losses, test.smoothed))
    axis.plot(rates, losses, ".", color=_GREY, markersize=3, alpha=0.6, label="loss of each update")
    axis.plot(rates, curve, color=_BLUE, linewidth=2, label="smoothed")
    axis.set_xscale("log")
    # What lies far above the start has diverged, and would flatten all that matters.
    shown = curve[np.isfinite(curve)]
    if len(shown):
        low, start = float(shown.min()), float(np.median(shown[: max(3, len(shown) // 10)]))
        span = max(start - low, 1e-3 * abs(start), 1e-9)
        axis.set_ylim(low - 0.15 * span, start + 0.6 * span)
    if own is not None:
        axis.axvline(
            own, color=_YELLOW, linestyle="--", zorder=3, label=f"yours: {number(own)}"
        )  # above the suggested one, which may be the same
    if test.suggestion is not None:
        rate = test.suggestion.rate
        axis.axvline(rate, color=_RED, linewidth=1.5, label=f"suggested: {number(rate)}")
    if test.diverged_at is not None:
        axis.axvline(
            test.diverged_at,
            color=_GREY,
            linestyle=":",
            label=f"diverges: {number(test.diverged_at)}",
        )
    axis.set_ylabel("training loss")
    axis.legend(frameon=False, fontsize=8, loc="lower left")


def draw_batches(points: list[BatchSizeResult], path: Path) -> None:
    """Samples per second and peak memory over the batch size."""
    figure = _figure(1)
    speed, memory = figure.subplots(1, 2)
    found = {point.batch_size: point.measured for point in points if point.measured}
    sizes = list(found)
    rates = [each.rate for each in found.values()]
    peaks = [each.peak / 2**30 for each in found.values()]
    speed.plot(sizes, rates, "o-", color=_BLUE)
    speed.set_title("Samples per second", loc="left", fontsize=11)
    memory.plot(sizes, peaks, "o-", color=_RED)
    memory.set_title("Peak memory, GiB", loc="left", fontsize=11)
    for axis, values in ((speed, rates), (memory, peaks)):
        axis.set_xscale("log", base=2)
        axis.set_xticks(
            sizes, [f"{size:,}" for size in sizes], rotation=45 if len(sizes) > 6 else 0
        )
        axis.minorticks_off()
        axis.set_ylim(0, 1.1 * max(values))
        axis.set_xlabel("batch size")
    _save(figure, path)


def _figure(rows: int) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_INCHES[0], _INCHES[1] * (1 + 0.8 * (rows - 1))), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Any, path: Path) -> None:
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(visible=True, color="#eceef1", linewidth=0.8)
        axis.set_axisbelow(True)
    from trueloop.checkpoint import write_atomic

    write_atomic(path, lambda file: figure.savefig(file, format="png", dpi=_DPI))

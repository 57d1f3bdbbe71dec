"""The report's charts as plain plotly figures: dicts that JSON can represent.

A figure here is `{"data": [...], "layout": {...}}`. Colours are names of the page's own inks
("@train"), which its script looks up, so that a chart follows the reader's light or dark setting.
Every chart has at most about 2,000 points a line.
"""

from __future__ import annotations

import html
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from trueloop.formatting import score_name, split_of
from trueloop.records import direction
from trueloop.run.log_reader import Floats, Line, LogReader, UpdateColumns

Figure = dict[str, Any]

POINTS = 2000
LOG_RATIO = 5.0
"""Of losses and errors: those that span more than this are drawn on a log axis."""
LOG_TITLE = "logarithmic"
SERIES = ("@c0", "@c1", "@c2", "@c3", "@c4", "@c5", "@c6")


def thin(x: Floats, y: Floats, limit: int = POINTS) -> tuple[Floats, Floats]:
    """At most `limit` of the points, in order, with every bucket's lowest and highest among them.

    Each of limit / 2 runs of neighbours is represented by its minimum and its maximum, so no spike
    is lost; NaN are passed over where a bucket has anything else. The ends are kept.
    """
    if len(x) <= limit:
        return x, y
    kept = {0, len(x) - 1}
    edges = np.linspace(0, len(x), limit // 2, dtype=np.int64)
    for start, stop in itertools.pairwise(edges):
        bucket = y[start:stop]
        if np.isnan(bucket).all():
            kept.add(int(start))
        else:
            kept.update((int(start + np.nanargmin(bucket)), int(start + np.nanargmax(bucket))))
    order = np.array(sorted(kept))
    return x[order], y[order]


def smooth(y: Floats, width: int) -> Floats:
    """The mean of the finite values in a centred window of `width` points, shorter at the ends."""
    finite = np.isfinite(y)
    sums = np.concatenate(([0.0], np.cumsum(np.where(finite, y, 0.0))))
    counts = np.concatenate(([0], np.cumsum(finite)))
    middle = np.arange(len(y))
    low = np.maximum(0, middle - width // 2)
    high = np.minimum(len(y), middle + (width + 1) // 2)
    count = counts[high] - counts[low]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(count > 0, (sums[high] - sums[low]) / count, np.nan)


def clean(values: Iterable[float]) -> list[float | None]:
    """Values as a chart's JSON has them: six digits, and a gap for NaN and the infinities."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def column(lines: Sequence[Line], name: str) -> Floats:
    """One value of each line as float64; NaN where it is missing."""
    values = (line.get(name) for line in lines)
    return np.array([math.nan if v is None else float(v) for v in values], dtype=np.float64)


def label(text: str) -> str:
    """A user's text for plotly, which would take it for HTML."""
    return html.escape(text, quote=False)


class Curves:
    """The curves of one run over its epochs, from its log; over its updates where evaluations were
    made within epochs, or if `by_updates` is true."""

    def __init__(self, log: LogReader, *, by_updates: bool = False) -> None:
        self.log = log
        self.updates = log.updates
        self.evals = [line for line in log.evals if line.get("epoch") is not None]
        self.skipped = self.updates.column("skipped") > 0
        self.applied = self.updates.chosen(~self.skipped)
        self.by_updates = by_updates or _within_epochs(log)
        self.axis = "update" if self.by_updates else "epoch"
        self.at_eval = column(self.evals, self.axis)
        self._per_epoch = 1 + np.max(self.updates.column("batch"), initial=0.0)

    def at(self, updates: UpdateColumns) -> Floats:
        """The positions of the updates on the axis; of epochs 2.5 is half-way through the third."""
        if self.by_updates:
            return updates.column("update")
        done = (updates.column("batch") + 1) / self._per_epoch
        return updates.column("epoch") - 1 + done

    def scores(self) -> list[str]:
        """The names of the scores in the evaluations, in order of appearance."""
        meta = {"kind", "epoch", "update", "time", "seconds"}
        return list(dict.fromkeys(name for line in self.evals for name in line if name not in meta))

    def last(self) -> dict[str, Any]:
        """The last line of an update; of an evaluation where no update is logged."""
        return self.updates.last() or (self.evals or [{}])[-1]


def _within_epochs(log: LogReader) -> bool:
    """Whether an update of the same epoch follows an evaluation."""
    epochs = log.updates.column("epoch")
    ends = [*log.eval_after[1:], len(epochs)]
    return any(
        (epochs[start:end] == line["epoch"]).any()
        for line, start, end in zip(log.evals, log.eval_after, ends, strict=False)
        if line.get("epoch") is not None
    )


def series(
    x: Floats,
    y: Floats,
    name: str,
    ink: str,
    *,
    dash: str = "solid",
    width: float = 2,
    opacity: float = 1.0,
) -> dict[str, Any]:
    """A line; a single point is drawn as a marker, having no line."""
    x, y = thin(x, y)
    lone = int(np.isfinite(y).sum()) <= 1
    return {
        "type": "scatter",
        "mode": "markers" if lone else "lines",
        "name": label(name),
        "x": clean(x),
        "y": clean(y),
        "opacity": opacity,
        "line": {"color": ink, "width": width, "dash": dash},
        "marker": {"color": ink, "size": 7},
    }


def figure(traces: list[dict[str, Any]], x: str = "epoch", y: str = "") -> Figure:
    """A chart with titled axes; `y` may be left to the heading above the chart."""
    axes: Figure = {"xaxis": {"title": {"text": label(x)}}, "yaxis": {"title": {"text": label(y)}}}
    if x == "epoch" and max((trace["x"][-1] for trace in traces if trace["x"]), default=0) <= 10:
        axes["xaxis"].update(tick0=0, dtick=1)  # no halves of an epoch
    return {"data": traces, "layout": axes}


def log_axis(chart: Figure, arrays: Sequence[Floats]) -> None:
    """Put the chart's y on a log axis for these values, with ticks written out: one a decade, and
    more of them the less the values span."""
    joined = np.concatenate([a[np.isfinite(a) & (a > 0)] for a in arrays])
    low, high = math.floor(math.log10(joined.min())), math.ceil(math.log10(joined.max()))
    ratio = joined.max() / joined.min()
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8) if ratio < 8 else (1, 2, 5) if ratio < 100 else (1,)
    stride = max(1, (high - low) // 8)
    ticks = [m * 10.0**k for k in range(low, high + 1, stride) for m in steps]
    texts = [f"{t:g}" for t in ticks]
    chart["layout"]["yaxis"].update(
        type="log", tickvals=ticks, ticktext=texts, title={"text": LOG_TITLE}
    )


def choose_axis(chart: Figure, arrays: Sequence[Floats], spread: Sequence[Floats] = ()) -> None:
    """Put positive values on a log axis if they, or those of `spread`, span more than `LOG_RATIO`,
    and keep the other axis for the button that changes it. `arrays` decide the ticks."""
    joined = np.concatenate([a[np.isfinite(a)] for a in (*arrays, *spread)] or [np.empty(0)])
    if not len(joined) or joined.min() <= 0:
        return
    linear = chart["layout"]["yaxis"]
    changed: Figure = {"layout": {"yaxis": {k: v for k, v in linear.items() if k != "range"}}}
    log_axis(changed, arrays)
    logarithmic = changed["layout"]["yaxis"]
    is_wide = _wide(arrays) or _wide(spread)
    chart["layout"]["yaxis"] = logarithmic if is_wide else linear
    chart["other_axis"] = linear if is_wide else logarithmic


def _wide(arrays: Iterable[Floats], ratio: float = LOG_RATIO) -> bool:
    """Whether positive values span so much that a linear axis would hide the small ones."""
    joined = np.concatenate([a[np.isfinite(a)] for a in arrays] or [np.empty(0)])
    return bool(len(joined) and joined.min() > 0 and joined.max() / joined.min() > ratio)


def mark(chart: Figure, at: int, text: str, *, top: bool) -> None:
    """A dotted upright line at the epoch (counted from 1) or update, named at its top or foot: the
    corner that the curves leave free."""
    layout = chart["layout"]
    line = {"color": "@faint", "width": 1.2, "dash": "dot"}
    shape = {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1}
    name = {"x": at, "yref": "paper", "xanchor": "right", "text": label(text)}
    corner = {"y": 1, "yanchor": "top"} if top else {"y": 0, "yanchor": "bottom"}
    font = {"color": "@muted", "size": 11}
    layout["shapes"] = [{**shape, "line": line, "layer": "below"}]
    layout["annotations"] = [{**name, **corner, "showarrow": False, "font": font}]


def loss(curves: Curves) -> Figure | None:
    """Training and validation loss per epoch, with the loss of the updates in the background: of
    many, each one's and the smoothed one."""
    traces, shown, spread = [], [], []
    losses = curves.applied.column("loss")
    if len(losses) > 1:
        width = max(1, len(losses) // 100)
        x = curves.at(curves.applied)
        if width > 1:
            traces.append(series(x, losses, "each update", "@train", width=0.8, opacity=0.2))
        softened = smooth(losses, width)
        finite = softened[np.isfinite(softened)]
        spread = [np.quantile(finite, [0.02, 0.98])] if len(finite) else []  # not of a lone spike
        name = "each update" if width == 1 else "smoothed"
        traces.append(series(x, softened, name, "@train", width=1, opacity=0.4))
    for name, text, ink in (
        ("train_loss", "training", "@train"),
        ("val_loss", "validation", "@val"),
    ):
        values = column(curves.evals, name)
        if np.isfinite(values).any():
            traces.append(series(curves.at_eval, values, text, ink))
            shown.append(values)
    if not traces:
        return None
    chart = figure(traces, curves.axis)
    _narrow(chart, losses, shown)
    choose_axis(chart, shown or spread, spread)
    return chart


def _narrow(chart: Figure, losses: Floats, shown: Sequence[Floats]) -> None:
    """Let the y-axis begin with what most updates and all evaluations span, if a few losses would
    flatten them: a double click shows all."""
    losses = losses[np.isfinite(losses)]
    if len(losses) < 200:
        return
    low, high = np.quantile(losses, [0.005, 0.995])
    ends = [a[np.isfinite(a)] for a in shown]
    low, high = min([low, *(a.min() for a in ends)]), max([high, *(a.max() for a in ends)])
    margin = 0.1 * (high - low)
    if losses.max() - losses.min() > 2 * (high - low):
        chart["layout"]["yaxis"]["range"] = [float(low - margin), float(high + margin)]


def scores(curves: Curves) -> list[tuple[str, Figure, bool]]:
    """Charts of the metrics, each with its title and whether its curves should rise.

    Those that rise (accuracy, R²) share one, those that fall (MAE) a second one; any other has its
    own, and so has perplexity, an exponential. Where a chart has several metrics, training is
    dashed.
    """
    families: dict[str, list[str]] = {}
    for name in curves.scores():
        bare = split_of(name)[1]
        if bare == "loss":
            continue
        family = {"max": "Scores", "min": "Errors", None: bare}[direction(name)]
        if bare == "perplexity":
            family = bare
        families.setdefault(family, []).append(name)
    charts = []
    for family, names in families.items():
        bares = list(dict.fromkeys(split_of(name)[1] for name in names))
        title = score_name(bares[0]) if len(bares) == 1 else family
        chart = _score_chart(curves, names, bares, family)
        charts.append((title, chart, family == "Scores"))
    return charts


def _score_chart(curves: Curves, names: list[str], bares: list[str], family: str) -> Figure:
    traces, arrays = [], []
    for name in names:
        split, bare = split_of(name)
        values = column(curves.evals, name)
        arrays.append(values)
        text = {"train": "training", "val": "validation"}.get(split or "", score_name(name))
        ink = {"train": "@train", "val": "@val"}.get(split or "", "@c0")
        if len(bares) > 1:
            text = score_name(bare) + (" (training)" if split == "train" else "")
            ink = SERIES[bares.index(bare) % len(SERIES)]
        dash = "dash" if split == "train" and len(bares) > 1 else "solid"
        traces.append(series(curves.at_eval, values, text, ink, dash=dash))
    chart = figure(traces, curves.axis)
    if family in ("Errors", "perplexity"):
        choose_axis(chart, arrays)
    finite = np.concatenate([a[np.isfinite(a)] for a in arrays])
    if family == "Scores" and len(finite) and finite.min() < -0.2 and finite.max() <= 1:
        # R² has no floor: a first epoch at -40 would flatten all that follows.
        chart["layout"]["yaxis"]["range"] = [-0.2, 1.03]
    return chart


def learning_rate(curves: Curves) -> Figure | None:
    """The learning rate of each update; of each parameter group that has a different one."""
    if not len(curves.applied):
        return None
    x, first = curves.at(curves.applied), curves.applied.column("lr")
    groups = [name for name in curves.applied.names() if name.startswith("lr/")]
    traces = [series(x, first, "learning rate", "@c0")]
    for k, name in enumerate(groups, start=1):
        # A line without it: there the group's rate is that of the first.
        own = curves.applied.column(name)
        own = np.where(np.isnan(own), first, own)
        traces.append(series(x, own, name.removeprefix("lr/"), SERIES[k % len(SERIES)]))
    chart = figure(traces, curves.axis)
    chart["layout"]["yaxis"].update(rangemode="tozero", exponentformat="power")
    return chart


def gradient_norm(curves: Curves, clip_norm: float | None) -> Figure | None:
    """The gradient norm before clipping on a log axis, the clip line, and skipped updates."""
    norms = curves.applied.column("grad_norm")
    if not (norms > 0).any():
        return None
    x = curves.at(curves.applied)
    # A norm of exactly zero has no place on a log axis.
    norms = np.where(norms > 0, norms, np.nan)
    middle = smooth(norms, max(1, len(norms) // 100))
    traces = [
        series(x, norms, "each update", "@c0", width=0.8, opacity=0.35),
        series(x, middle, "smoothed", "@c0"),
    ]
    if clip_norm is not None and math.isfinite(clip_norm) and clip_norm > 0:
        ends = np.array([0.0, float(x[-1])])
        level = np.full(2, clip_norm)
        traces.append(series(ends, level, f"clip at {clip_norm:g}", "@c1", dash="dash", width=1.5))
    skipped = curves.at(curves.updates.chosen(curves.skipped))
    if len(skipped):
        x_skipped, _ = thin(skipped, np.zeros_like(skipped))
        marks = {
            "type": "scatter", "mode": "markers", "name": "skipped", "x": clean(x_skipped),
            "y": clean(np.full(len(x_skipped), np.nanmax(norms))),
            "marker": {"color": "@bad", "symbol": "x-thin-open", "size": 8},
        }  # fmt: skip
        traces.append(marks)
    chart = figure(traces, curves.axis)
    log_axis(chart, [norms])
    return chart


def clipped_share(curves: Curves, clip_norm: float | None) -> float | None:
    """The share of the logged updates whose gradient norm was above `clip_norm`."""
    norms = curves.applied.column("grad_norm")
    norms = norms[np.isfinite(norms)]
    if clip_norm is None or not len(norms):
        return None
    return float((norms > clip_norm).mean())


def confusion(matrix: Sequence[Sequence[float]], classes: Sequence[str]) -> Figure:
    """A heat map of the shares per true class, for more classes than a table can show."""
    counts = np.array(matrix, dtype=np.float64)
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(totals, 1)
    names = [label(name) for name in classes]
    trace = {
        "type": "heatmap", "x": names, "y": names, "z": [clean(row) for row in shares],
        "customdata": counts.tolist(), "zmin": 0, "zmax": 1, "showscale": False,
        "colorscale": [[0, "@surface"], [0.02, "@heat"], [1, "@val"]],
        "hovertemplate": "true %{y}<br>predicted %{x}<br>%{customdata:,} (%{z:.1%})<extra></extra>",
    }  # fmt: skip
    chart = figure([trace], "predicted", "true")
    chart["layout"]["yaxis"].update(autorange="reversed", type="category", showgrid=False)
    chart["layout"]["xaxis"].update(type="category", showgrid=False)
    chart["layout"].update(hovermode="closest", height=560)
    return chart


def predicted_against_true(target: Floats, prediction: Floats) -> Figure:
    """Predictions over targets with the diagonal of the exact ones."""
    step = max(1, math.ceil(len(target) / POINTS))
    ends = np.array([np.min(target), np.max(target)])
    points = {
        "type": "scatter", "mode": "markers", "name": "samples", "x": clean(target[::step]),
        "y": clean(prediction[::step]), "marker": {"color": "@val", "size": 4, "opacity": 0.45},
    }  # fmt: skip
    traces = [points, series(ends, ends, "exact", "@faint", dash="dash", width=1.5)]
    chart = figure(traces, "true value", "predicted value")
    chart["layout"].update(hovermode="closest", showlegend=False)
    return chart


def residual_histogram(residual: Floats) -> tuple[Figure, int]:
    """How often each size of error occurs, and how many are beyond the chart's ends.

    The chart spans the middle 99% with some margin, so that a few far ones do not flatten it.
    """
    low, high = np.quantile(residual, [0.005, 0.995])
    margin = 0.1 * (high - low) or 0.5
    counts, edges = np.histogram(residual, bins=50, range=(low - margin, high + margin))
    bars = {
        "type": "bar", "name": "samples", "x": clean((edges[:-1] + edges[1:]) / 2),
        "y": counts.tolist(), "width": float(edges[1] - edges[0]),
        "marker": {"color": "@val", "opacity": 0.75, "line": {"width": 0}},
    }  # fmt: skip
    chart = figure([bars], "predicted − true", "samples")
    chart["layout"].update(bargap=0.04, showlegend=False)
    return chart, len(residual) - int(counts.sum())


def overlay(curves: Sequence[tuple[str, Curves]], names: Sequence[str]) -> Figure | None:
    """One score of several runs: `names[0]` solid and, where it exists, `names[1]` dotted."""
    traces, arrays = [], []
    for k, (run, own) in enumerate(curves):
        for name, dash in zip(names, ("solid", "dot"), strict=False):
            values = column(own.evals, name)
            if not np.isfinite(values).any():
                continue
            text = run if name == names[0] else f"{run}, {score_name(name).split()[0]}"
            trace = series(own.at_eval, values, text, SERIES[k % len(SERIES)], dash=dash)
            if name != names[0]:
                trace.update(opacity=0.7, showlegend=False)
            traces.append(trace)
            arrays.append(values)
    if not traces:
        return None
    chart = figure(traces, curves[0][1].axis)
    if direction(names[0]) != "max":
        choose_axis(chart, arrays)
    return chart

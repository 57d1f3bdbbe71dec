"""A study on one page: its history, which options mattered, their values, the best command."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trueloop.checkpoint import write_atomic
from trueloop.formatting import capital, duration, number, score_name
from trueloop.records import is_better
from trueloop.run.charts import LOG_RATIO, Figure, clean, figure, label, log_axis, series
from trueloop.run.html_page import Chart, Section, publish
from trueloop.tune.space import Range
from trueloop.tune.study import StudyConfig, StudyFolder

if TYPE_CHECKING:
    import optuna

_STATES = {"COMPLETE": "finished", "PRUNED": "pruned", "FAIL": "failed", "RUNNING": "not over"}
_LEAST_FOR_IMPORTANCE = 4
"""Finished trials, below which a share of the variance says nothing."""


def write_page(folder: StudyFolder, study: optuna.Study) -> Path:
    """Write report.html, and best.yaml, into the study's folder; the page's path."""
    plan, trials = folder.plan, study.get_trials(deepcopy=False)
    best = best_trial(plan, trials)
    if best is not None:
        write_atomic(folder.path / "best.yaml", folder.config_of(best.number).read_bytes())
    sections = _sections(plan, study, trials)
    context = {
        "name": f"Search of {Path(plan.task).name if ':' in plan.task else plan.task}",
        "monitor": capital(score_name(plan.monitor)),
        "best": None if best is None else number(best.value),
        "best_number": None if best is None else best.number,
        "best_params": [] if best is None else _shown_params(best.params),
        "command": None if best is None else best_command(folder),
        "counts": _counts(trials),
        "rows": [_row(plan, trial, best) for trial in _sorted(plan, trials)],
        "options": list(plan.space),
        "sections": sections,
        "figures": {chart.name: chart.figure for part in sections for chart in part.charts},
    }
    page = folder.path / "report.html"
    publish(page, "study.html.j2", context)
    return page


def best_trial(plan: StudyConfig, trials: list[Any]) -> Any | None:
    """The finished trial with the best value, of equals the first; None without one."""
    best = None
    for trial in trials:
        if trial.state.name == "COMPLETE" and (
            best is None or is_better(trial.value, best.value, plan.mode)
        ):
            best = trial
    return best


def best_command(folder: StudyFolder) -> str:
    """The training with the best values."""
    place = folder.path / "best.yaml"
    here = Path.cwd()
    shown = place.relative_to(here) if place.is_relative_to(here) else place
    return f"trueloop train --config {shlex.quote(str(shown))}"


def _counts(trials: list[Any]) -> str:
    names = [_STATES.get(trial.state.name, "not over") for trial in trials]
    parts = [f"{names.count(word)} {word}" for word in _STATES.values() if word in names]
    return f"{len(trials)} trial{'s' if len(trials) != 1 else ''}: {', '.join(parts)}"


def _shown_params(params: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, _shown(value)) for name, value in params.items()]


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _value(trial: Any) -> float | None:
    """A trial's value; of one that was pruned, its last one."""
    if trial.state.name == "COMPLETE":
        return float(trial.value)
    if trial.intermediate_values:
        return float(trial.intermediate_values[max(trial.intermediate_values)])
    return None


def _sorted(plan: StudyConfig, trials: list[Any]) -> list[Any]:
    """The finished ones first, the best of them at the top; then the others."""
    sign = 1 if plan.mode == "min" else -1

    def key(trial: Any) -> tuple[int, float, int]:
        value = _value(trial)
        done = trial.state.name != "COMPLETE"
        return done, math.inf if value is None else sign * value, trial.number

    return sorted(trials, key=key)


def _row(plan: StudyConfig, trial: Any, best: Any) -> dict[str, Any]:
    reason = trial.user_attrs.get("reason", "")
    state = _STATES.get(trial.state.name, "not over")
    seconds = trial.duration.total_seconds() if trial.duration else None
    return {
        "number": trial.number,
        "is_best": best is not None and trial.number == best.number,
        "value": number(_value(trial)),
        "cells": [
            _shown(trial.params[name]) if name in trial.params else "–" for name in plan.space
        ],
        "evaluations": len(trial.intermediate_values),
        "seconds": duration(seconds),
        "state": f"{state}: {reason}" if reason else state,
    }


def _sections(plan: StudyConfig, study: optuna.Study, trials: list[Any]) -> list[Section]:
    drawn = [trial for trial in trials if _value(trial) is not None]
    if not drawn:
        return []
    course = Section("Course", [Chart("history", "Value of each trial", _history(plan, drawn))])
    shares = importances(study, plan)
    if shares:
        note = "The share of the differences among the best trials that each option explains "
        note += "(PED-ANOVA, Watanabe et al., IJCAI 2023)."
        course.charts.append(Chart("importance", "Importance", _bars(shares), note))
    course.charts[-1].wide = len(course.charts) % 2 == 1
    values = Section("Options")
    done = [trial for trial in drawn if trial.state.name == "COMPLETE"]
    for k, name in enumerate(plan.space):
        values.charts.append(Chart(f"slice-{k}", name, _slice(plan, drawn, name)))
    if values.charts:
        values.charts[-1].wide = len(values.charts) % 2 == 1
    if len(done) > 1 and len(plan.space) > 1:
        chart = Chart("parallel", "All options together", _parallel(plan, done), wide=True)
        chart.note = "Each line is a finished trial; drag along an axis to choose some."
        values.charts.append(chart)
    return [course, values]


def importances(study: optuna.Study, plan: StudyConfig) -> dict[str, float]:
    """Share of each option; empty where there are too few finished trials to say."""
    import optuna

    done = [t for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
    if len(done) < _LEAST_FOR_IMPORTANCE or len(plan.space) < 2:
        return {}
    if len({trial.value for trial in done}) < 2:
        return {}
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in found.items() if math.isfinite(share)}


def _history(plan: StudyConfig, drawn: list[Any]) -> Figure:
    """The value of each trial, and the best so far."""
    traces: list[dict[str, Any]] = []
    for state, ink, symbol in (("COMPLETE", "@c0", "circle"), ("PRUNED", "@c1", "x")):
        chosen = [trial for trial in drawn if trial.state.name == state]
        if chosen:
            traces.append(
                _points(
                    [t.number for t in chosen], [_value(t) for t in chosen], _STATES[state], ink,
                    symbol, [_hover(t) for t in chosen],
                )
            )  # fmt: skip
    at: list[int] = []
    best: list[float] = []
    for trial in drawn:
        value = trial.value if trial.state.name == "COMPLETE" else None
        if value is not None and (not best or is_better(value, best[-1], plan.mode)):
            at.append(trial.number)
            best.append(value)
    if best:
        at.append(max(drawn[-1].number, at[-1] + 1))
        best.append(best[-1])
        line = series(
            np.array(at, float), np.array(best, float), "best so far", "@muted", width=1.5
        )
        line["line"]["shape"] = "hv"
        traces.insert(0, line)
    chart = figure(traces, "trial", score_name(plan.monitor))
    _spread(plan, chart, drawn)
    return chart


def _spread(plan: StudyConfig, chart: Figure, drawn: list[Any]) -> None:
    """A log axis for losses that span so much that a linear one would hide the good ones."""
    chart["layout"]["hovermode"] = "closest"
    values = np.array([v for v in map(_value, drawn) if v is not None and math.isfinite(v)])
    wide = len(values) and values.min() > 0 and values.max() / values.min() > LOG_RATIO
    if wide and plan.mode == "min":
        log_axis(chart, [values])


def _points(
    x: list[Any], y: list[Any], name: str, ink: str, symbol: str, hover: list[str]
) -> dict[str, Any]:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": x, "y": clean(y), "text": hover,
        "hoverinfo": "text", "marker": {"color": ink, "size": 8, "symbol": symbol, "opacity": 0.85},
    }  # fmt: skip


def _hover(trial: Any) -> str:
    values = "<br>".join(label(f"{name} {text}") for name, text in _shown_params(trial.params))
    return f"trial {trial.number}: {number(_value(trial))}<br>{values}"


def _bars(shares: dict[str, float]) -> Figure:
    names = list(shares)[::-1]
    bars = {
        "type": "bar", "orientation": "h", "x": clean([shares[n] for n in names]),
        "y": [label(n) for n in names], "marker": {"color": "@c0", "opacity": 0.8},
        "hovertemplate": "%{y}: %{x:.0%}<extra></extra>",
    }  # fmt: skip
    chart = figure([bars], "share")
    chart["layout"]["xaxis"]["tickformat"] = ".0%"
    chart["layout"]["showlegend"] = False
    chart["layout"]["hovermode"] = "closest"
    return chart


def _slice(plan: StudyConfig, drawn: list[Any], name: str) -> Figure:
    """The trials' values over one option."""
    dimension = plan.space[name]
    traces = []
    for state, ink, symbol in (("COMPLETE", "@c0", "circle"), ("PRUNED", "@c1", "x")):
        chosen = [t for t in drawn if t.state.name == state and name in t.params]
        if chosen:
            x = [t.params[name] for t in chosen]
            x = x if isinstance(dimension, Range) else [label(str(value)) for value in x]
            y, hover = [_value(t) for t in chosen], [_hover(t) for t in chosen]
            traces.append(_points(x, y, _STATES[state], ink, symbol, hover))
    chart = figure(traces, name, score_name(plan.monitor))
    _spread(plan, chart, drawn)
    if isinstance(dimension, Range) and dimension.log:
        chart["layout"]["xaxis"].update(type="log", exponentformat="power", dtick=1)
        span = math.log10(dimension.high / dimension.low)
        if span < 2:
            chart["layout"]["xaxis"].pop("dtick")
    elif not isinstance(dimension, Range):
        names = [label(str(value)) for value in dimension.values]
        chart["layout"]["xaxis"].update(type="category", categoryorder="array", categoryarray=names)
    return chart


def _parallel(plan: StudyConfig, done: list[Any]) -> Figure:
    """Parallel coordinates: an axis for each option, and one for the value."""
    values = [float(trial.value) for trial in done]
    axes = [_axis(plan, done, name) for name in plan.space]
    axes.append({"label": label(score_name(plan.monitor)), "values": clean(values)})
    low_is_good = plan.mode == "min"
    trace = {
        "type": "parcoords",
        "dimensions": axes,
        "line": {
            "color": clean(values), "showscale": False,
            "colorscale": [[0, "@c0" if low_is_good else "@rule"],
                           [1, "@rule" if low_is_good else "@c0"]],
        },
    }  # fmt: skip
    # Its axes are its own; those of the layout would be drawn under it.
    return {
        "data": [trace],
        "layout": {
            "height": 380, "showlegend": False, "margin": {"l": 60, "r": 60, "t": 60, "b": 20},
            "xaxis": {"visible": False}, "yaxis": {"visible": False},
        },
    }  # fmt: skip


def _axis(plan: StudyConfig, done: list[Any], name: str) -> dict[str, Any]:
    dimension = plan.space[name]
    values = [trial.params[name] for trial in done]
    if not isinstance(dimension, Range):
        names = [str(value) for value in dimension.values]
        return {
            "label": label(name), "values": [names.index(str(v)) for v in values],
            "tickvals": list(range(len(names))), "ticktext": [label(n) for n in names],
            "range": [0, len(names) - 1],
        }  # fmt: skip
    if not dimension.log:
        return {"label": label(name), "values": values, "range": [dimension.low, dimension.high]}
    low, high = math.log10(dimension.low), math.log10(dimension.high)
    whole = range(math.ceil(low), math.floor(high) + 1)
    ticks = list(whole) if len(whole) > 1 else [low, high]
    return {
        "label": label(name), "values": clean([math.log10(v) for v in values]),
        "range": [low, high], "tickvals": ticks, "ticktext": [f"{10.0**t:.3g}" for t in ticks],
    }  # fmt: skip

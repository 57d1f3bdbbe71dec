"""Several runs on one page: results, the options in which they differ, their curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trueloop.errors import RunError
from trueloop.formatting import capital, duration, number, score_name, split_of
from trueloop.records import direction
from trueloop.run import charts
from trueloop.run.charts import Curves
from trueloop.run.directory import Run
from trueloop.run.html_page import EMPTY, Chart, Section, flatten, publish, publish_packed, show
from trueloop.run.log import LOG
from trueloop.run.log_reader import LogReader, read_log
from trueloop.run.report import best_place, curves_of, monitored, samples_per_second

_SPLIT = (
    "seed", "fold", "folds", "split", "val_share", "test_share", "val_fraction", "test_fraction",
    "val_data", "test_data", "context",
)  # fmt: skip
"""Options that decide which samples, or how much of them, a run validates on."""
_LOSS = ("kind", "quantiles", "log_target", "z_loss", "tokenizer")
"""Options that decide what the loss is, or what it is the mean of."""
_OF_THE_LOSS = ("loss", "perplexity")


def compare(
    runs: Sequence[Run],
    out: Path | str,
    *,
    title: str | None = None,
    summary: Sequence[tuple[str, str]] = (),
    one_file: bool = False,
) -> Path:
    """Write one page that sets several runs side by side.

    It shows their results, the options in which they differ, and their curves over each other; runs
    on different data sets apart. Of runs that validate on the same samples, the best of each column
    is bold. The script for the charts is written beside the page.

    Args:
        runs: one or more.
        out: the page's path.
        title: None for how many runs are compared.
        summary: names and values that the page opens with.
        one_file: put all that the page needs into it.

    Returns:
        `out`.

    Raises:
        RunError: no run, a run that is damaged, or a page that cannot be written.
    """
    if not runs:
        raise RunError("no run to compare: name one or more run directories")
    out = Path(out)
    if out.is_dir():
        raise RunError(f"{out} is a folder: name the page, e.g. {out / 'compare.html'}")
    names = _distinct_names(runs)
    logs = [read_log(run.path / LOG) for run in runs]
    groups: list[dict[str, Any]] = []
    by_data = same_data(runs)
    for members in by_data:
        first = sum(len(part.charts) for group in groups for part in group["sections"])
        chosen = [(runs[k], names[k], logs[k]) for k in members]
        group = _group(chosen, first=first)
        if len(members) == 1 < len(by_data):
            group["sections"] = []  # its own report has them
        groups.append(group)
    if len(groups) > 1:
        words = "The runs have different data sets: only those with the same one are compared."
    else:
        words, groups[0]["note"] = groups[0]["note"], ""
    sections = [section for group in groups for section in group["sections"]]
    context = {
        "title": title or f"{len(runs)} run{'s' if len(runs) > 1 else ''} compared",
        "summary": summary,
        "subtitle": words,
        "groups": groups,
        "figures": {chart.name: chart.figure for part in sections for chart in part.charts},
    }
    if one_file:
        return publish_packed(out, "compare.html.j2", context, beside=out.parent)
    publish(out, "compare.html.j2", context)
    return out


def _distinct_names(runs: Sequence[Run]) -> list[str]:
    """The runs' names, with as much of their folders as distinguishes them."""
    parts = [run.path.resolve().parts for run in runs]
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-depth:]) for part in parts]
        if len(set(names)) == len(set(parts)):
            return names
    return names


def _group(members: Sequence[tuple[Run, str, LogReader]], *, first: int) -> dict[str, Any]:
    """The part of the page about runs on the same data; its charts are numbered from `first`."""
    runs, names, logs = zip(*members, strict=True)
    curves = [curves_of(run, log) for run, log in zip(runs, logs, strict=True)]
    if any(own.by_updates for own in curves):  # one axis for all
        curves = [Curves(log, by_updates=True) for log in logs]
    evaluated = [run for run, own in zip(runs, curves, strict=True) if own.evals]
    unlike, other_loss = _unlike(evaluated, _SPLIT), _unlike(evaluated, _LOSS)
    axis = curves[0].axis
    note = f"Scores are those of each run's best {axis}"
    if unlike:
        note += f"; no best is marked, as the runs were not evaluated on the same samples: {unlike}"
    elif len(runs) > 1:
        note += "; the best of a column is bold"
        note += f", but of no loss, as the losses are different: {other_loss}" if other_loss else ""
    return {
        "data": _data_in_words(runs[0]),
        "note": f"{note}.",
        "names": names,
        "axis": axis,
        "results": _results(
            runs, names, curves, mark=not unlike, unmarked=_OF_THE_LOSS if other_loss else ()
        ),
        "options": _differing([run.config for run in runs]),
        "sections": _overlays(list(zip(names, curves, strict=True)), first),
    }


def same_data(runs: Sequence[Run]) -> list[list[int]]:
    """The positions of the runs, grouped by the data set that they were trained on: the digest of
    its files, and what is predicted of it."""
    groups: dict[str, list[int]] = {}
    for k, run in enumerate(runs):
        groups.setdefault(repr(_data_set(run)), []).append(k)
    return list(groups.values())


def _data_set(run: Run) -> tuple[Any, ...]:
    data = run.environment.get("data")
    found = data.get("digest") or data.get("path") if isinstance(data, Mapping) else None
    return run.option("task"), found or run.option("data"), run.option("target")


def _unlike(runs: Sequence[Run], options: Sequence[str]) -> str:
    """Those of the options in which the runs differ, with their values; "" if in none."""
    found = []
    for name in options:
        values = list(dict.fromkeys(show(run.option(name)) for run in runs))
        if len(values) > 1:
            found.append(f"{name} is {', '.join(values)}")
    return "; ".join(found)


def _data_in_words(run: Run) -> str:
    """The task of a run and its data, as a heading."""
    task, data, target = (run.option(name) for name in ("task", "data", "target"))
    words = [str(task)] if task else []
    words += [Path(data).name] if isinstance(data, str) else []
    return ", ".join(words + ([f"target {target}"] if target else [])) or "unnamed data"


def _results(
    runs: Sequence[Run],
    names: Sequence[str],
    curves: Sequence[Curves],
    *,
    mark: bool,
    unmarked: Sequence[str],
) -> dict[str, Any]:
    """The table of results: one row per run, one column per validation or test score, with the best
    of each column marked if `mark` is true, but of no score in `unmarked`."""
    rows: list[dict[str, Any]] = []
    columns: dict[str, list[float | None]] = {}
    for k, (run, name, own) in enumerate(zip(runs, names, curves, strict=True)):
        results = run.results
        at, best = best_place(results, own, monitored(run, results, own))
        scores = {key: value for key, value in best.items() if split_of(key)[0] == "val"}
        if not scores:
            scores = {key: value for key, value in best.items() if split_of(key)[0] == "train"}
        for key, value in (results.get("test_scores") or {}).items():
            scores[f"test_{key.removeprefix('test_')}"] = value
        for key, value in scores.items():
            columns.setdefault(key, [None] * len(runs))[k] = value
        rows.append({"name": name, "facts": _facts(run, results, own, at)})
    winners = {
        key: _best(key, values) if mark and split_of(key)[1] not in unmarked else None
        for key, values in columns.items()
    }
    for k, row in enumerate(rows):
        row["scores"] = [
            {"text": number(values[k]), "best": values[k] is not None and values[k] == winners[key]}
            for key, values in columns.items()
        ]
    return {"heads": [capital(score_name(key)) for key in columns], "rows": rows}


def _best(name: str, values: Sequence[float | None]) -> float | None:
    """The best of a column; None if there is nothing to choose between."""
    finite = [v for v in values if v is not None and math.isfinite(v)]
    if len(finite) < 2 or direction(name) is None:
        return None
    return max(finite) if direction(name) == "max" else min(finite)


def _facts(run: Run, results: Mapping[str, Any], curves: Curves, at: int | None) -> list[str]:
    speed = samples_per_second(curves)
    last = curves.last()
    total = results.get("epochs", len(curves.evals))
    if curves.by_updates:
        total = results.get("updates", int(last.get("update") or 0))
    return [
        run.status,
        "–" if at is None else f"{at:,} of {total:,}",
        duration(results.get("seconds", last.get("time"))),
        "–" if speed is None else f"{speed:,.0f}",
    ]


def _differing(configs: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """The options that are not the same in all runs, each with its value in every run."""
    tables = [dict(flatten(config)) for config in configs]
    names = dict.fromkeys(name for table in tables for name in table)
    rows = [(name, [table.get(name, EMPTY) for table in tables]) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def _overlays(curves: Sequence[tuple[str, Curves]], first: int) -> list[Section]:
    """A chart per metric: validation solid, training dotted; only training where that is all."""
    bares = dict.fromkeys(split_of(name)[1] for _, own in curves for name in own.scores())
    section = Section("Curves", note="Solid lines are validation, dotted ones training.")
    for k, bare in enumerate(sorted(bares, key=lambda bare: bare != "loss"), start=first):
        pairs = ([f"val_{bare}", f"train_{bare}"], [f"train_{bare}"], [bare])
        figure = next((f for names in pairs if (f := charts.overlay(curves, names))), None)
        if figure is not None:
            section.charts.append(Chart(f"overlay-{k}", capital(score_name(bare)), figure))
    if section.charts:
        section.charts[-1].wide = len(section.charts) % 2 == 1
    return [section] if section.charts else []

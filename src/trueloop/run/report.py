"""The run's report: one page that opens without a network, made only from the run directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from trueloop.formatting import capital, duration, number, percent, score_name, split_of
from trueloop.lengths import parse_amount
from trueloop.run import charts
from trueloop.run.calibration_page import calibration
from trueloop.run.charts import Curves
from trueloop.run.class_tables import confusion_of, per_class
from trueloop.run.directory import UNFINISHED, Run
from trueloop.run.environment import GIVEN
from trueloop.run.html_page import (
    EMPTY,
    Chart,
    Rewritten,
    Section,
    flatten,
    publish,
    publish_packed,
    when,
)
from trueloop.run.interval_page import intervals
from trueloop.run.lineage import code_history, evaluations_of, parts_of
from trueloop.run.log import LOG, best_eval
from trueloop.run.log_reader import LogReader, read_log
from trueloop.run.outliers import is_outlier, summary
from trueloop.run.overfitting import overfitting
from trueloop.run.profile_page import profile_of
from trueloop.run.texts import conversation, texts

_LONG_TABLE = 30
_TELLING = ("accuracy", "r2")
_MAIN = (
    "task", "data", "epochs", "updates", "tokens", "batch_size", "optimizer", "lr", "weight_decay",
    "schedule", "precision", "seed", "fold", "chosen_threads", "ranks",
)  # fmt: skip
"""Options that a reader looks for, given or not."""
_FIELDS = ("code", "name", "severity", "place", "message", "fix")
_SEVERITIES = {"error": "bad", "warning": "warn", "advice": ""}
_TONES = {"not overfitting": "good", "overfitting": "warn", "unstable": "warn", "diverged": "bad"}


def write_report(
    run: Run,
    *,
    log: LogReader | None = None,
    rewritten: Rewritten | None = None,
    one_file: Path | None = None,
) -> Path:
    """Write report.html, and the script for its charts beside it.

    Reads nothing but the run directory, and takes what is there: a run that is still going, was
    interrupted, or has no validation gets the parts that it has.

    Args:
        run: the run.
        log: its log, as far as it is read; None reads it.
        rewritten: for a run that is going on: how often the page is written again.
        one_file: write the page with all that it needs to this file instead.

    Returns:
        The page's path.

    Raises:
        RunError: a file of the run is corrupt, or the page cannot be written.
    """
    # A resumed run still has the results of the part before.
    results = run.results if rewritten is None else {"status": "running"}
    curves = curves_of(run, read_log(run.path / LOG) if log is None else log)
    sections = _sections(run, results, curves)
    confusion = confusion_of(results)
    drawn = [chart for section in sections for chart in section.charts]
    if confusion and confusion["chart"]:
        drawn.append(confusion["chart"])
    context = {
        "name": run.name,
        "subtitle": _subtitle(run, results),
        "result": _result(run, results, curves),
        "findings": _findings(run),
        "profile": profile_of(run),
        "sections": sections,
        "figures": {chart.name: chart.figure for chart in drawn},
        "confusion": confusion,
        "per_class": per_class(results),
        "long_table": _LONG_TABLE,
        "pictures": _pictures(run, results),
        "conversation": conversation(run.data),
        "texts": texts(run),
        "tables": _tables(run),
        "rewritten": rewritten,
    }
    if one_file is not None:
        return publish_packed(one_file, "report.html.j2", context, beside=run.path)
    page = run.path / "report.html"
    publish(page, "report.html.j2", context)
    return page


def curves_of(run: Run, log: LogReader, *, by_updates: bool = False) -> Curves:
    """The run's curves: over updates where its length or its evaluations are not counted in epochs,
    or if `by_updates` is true."""
    every = run.option("eval_every")
    found = parse_amount(every) if isinstance(every, str) else None
    apart = found is not None and found[1] != "epochs"
    longer = any(isinstance(run.option(unit), int) for unit in ("updates", "tokens"))
    return Curves(log, by_updates=by_updates or apart or longer)


def _subtitle(run: Run, results: Mapping[str, Any]) -> list[str]:
    task = results.get("task") or run.option("task")
    parts = [f"task {task}"] if task else []
    started = run.environment.get("started")
    if started:
        parts.append(when(started))
    return parts


def _result(run: Run, results: dict[str, Any], curves: Curves) -> dict[str, Any]:
    """The top of the page: the score, how it ended, the facts, and the word on overfitting."""
    monitor = monitored(run, results, curves)
    at, scores = best_place(results, curves, monitor)
    status, sentence = overfitting(curves.evals, curves.axis)
    shown = headline(scores, monitor)
    return {
        "value": number(scores.get(shown or "")),
        "label": score_name(shown) if shown else "no score yet:",
        "where": _where(run, results, curves, at) + _chosen_by(shown, monitor),
        "good_end": results.get("status") in ("finished", "stopped early"),
        "facts": _facts(run, results, curves),
        "scores": _score_table(scores, results.get("test_scores"), shown),
        "at": None if at is None else f"{curves.axis} {at:,}",
        "overfitting": {
            "title": capital(status),
            "sentence": sentence,
            "tone": _TONES.get(status, ""),
        },
        "notes": _notes(results, curves),
    }


def monitored(run: Run, results: Mapping[str, Any], curves: Curves) -> str | None:
    """The score that chose the best weights, or the one that would have."""
    names = curves.scores()
    for name in (results.get("monitor"), run.option("monitor"), "val_loss", "train_loss"):
        if name and (name in names or name in (results.get("scores") or {})):
            return str(name)
    return None


def headline(scores: Mapping[str, float], monitor: str | None) -> str | None:
    """The score that the page opens with: the monitored one, or, if that is a loss, the accuracy
    or R² of the same evaluation, which says more."""
    if monitor is None or split_of(monitor)[1] != "loss":
        return monitor
    split = split_of(monitor)[0]
    return next((name for b in _TELLING if (name := f"{split}_{b}") in scores), monitor)


def best_place(
    results: Mapping[str, Any], curves: Curves, monitor: str | None
) -> tuple[int | None, dict[str, float]]:
    """The epoch (from 1) or update of the best evaluation, as the axis of the curves has it, and
    its scores: those of the results, or else of the log."""
    line = best_eval(curves.evals, monitor) or {}
    at = results.get(f"best_{curves.axis}")
    scores = results.get("scores") or {name: line[name] for name in curves.scores() if name in line}
    return (line.get(curves.axis) if at is None else at), scores


def _chosen_by(shown: str | None, monitor: str | None) -> str:
    """Why the score is from that evaluation, where it is not the one that chose it."""
    if shown is None or monitor is None or shown == monitor:
        return ""
    return f" (lowest {score_name(monitor)})"


def _where(run: Run, results: Mapping[str, Any], curves: Curves, at: int | None) -> str:
    if curves.by_updates:
        return _where_by_updates(run, results, curves, at)
    done = results.get("epochs", len(curves.evals))
    planned = run.option("epochs")
    planned = planned if isinstance(planned, int) else done
    if not done:
        return "the first epoch is not complete"
    if at is None:
        return f"{done} of {planned} epochs done"
    where = f"at epoch {at} of {planned}"
    return where if done >= planned else f"{where}; the run ended after {done}"


def _where_by_updates(run: Run, results: Mapping[str, Any], curves: Curves, at: int | None) -> str:
    done = results.get("updates", curves.log.last_update)
    planned = run.option("updates")
    planned = planned if isinstance(planned, int) else done
    if at is None:
        return f"{done:,} of {planned:,} updates done"
    where = f"at update {at:,} of {planned:,}"
    return where if done >= planned else f"{where}; the run ended after {done:,}"


def _facts(run: Run, results: Mapping[str, Any], curves: Curves) -> list[tuple[str, str]]:
    last = curves.last()
    seconds = results.get("seconds", last.get("time"))
    updates = results.get("updates", last.get("update"))
    parameters = results.get("parameters")
    facts = [
        ("Status", results.get("status", UNFINISHED)),
        ("Wall time", duration(seconds)),
        _speed(curves),
        ("Updates", "–" if updates is None else f"{int(updates):,}"),
        ("Parameters", "–" if parameters is None else f"{parameters:,}"),
        ("Device", _device(run.environment.get("device"))),
        ("Ranks", _ranks(run.environment)),
    ]
    return [(name, text) for name, text in facts if text != "–"]


def _speed(curves: Curves) -> tuple[str, str]:
    """The items of a second of training: tokens of a language model, else samples."""
    speed = samples_per_second(curves)
    counts = [float(np.nansum(curves.updates.column(n))) for n in ("samples", "tokens")]
    what, each = ("Tokens", counts[1] / counts[0]) if all(counts) else ("Samples", 1.0)
    return f"{what} per second", "–" if speed is None else f"{speed * each:,.0f}"


def _device(facts: Any) -> str:
    """The device in a few words: an accelerator by its name, a CPU by its threads."""
    if not isinstance(facts, Mapping) or "device" not in facts:
        return str(facts or "–")
    if facts["device"] != "cpu":
        return str(facts.get("name") or facts["device"])
    threads = facts.get("threads")
    return f"CPU, {threads} thread{'s' if threads != 1 else ''}" if threads else "CPU"


def _ranks(environment: Mapping[str, Any]) -> str:
    """How many ranks trained together, on how many hosts and how; nothing of one process."""
    parts = [_ranks_of(part) for part in parts_of(environment)]
    changes = [text for k, text in enumerate(parts) if k == 0 or text != parts[k - 1]]
    return changes[0] if len(changes) == 1 else ", then ".join(changes).replace("–", "1")


def _ranks_of(environment: Mapping[str, Any]) -> str:
    count, hosts = environment.get("ranks"), environment.get("hosts")
    if not isinstance(count, int) or count < 2:
        return "–"
    where = f" on {len(hosts)} hosts" if isinstance(hosts, Mapping) and len(hosts) > 1 else ""
    how = environment.get("parallel")
    return f"{count:,}{where}" + (f", {how}" if how else "")


def samples_per_second(curves: Curves) -> float | None:
    """The training speed; None if no epoch has two logged updates.

    An epoch counts from its first logged update (start-up and pictures are before it) to where its
    evaluation starts, by when the device has done its work. Where not every update is logged, those
    between count as large as the next one that is.
    """
    updates = curves.updates
    each, number, time = (updates.column(name) for name in ("samples", "update", "time"))
    samples = seconds = 0.0
    start = 0
    for end, stopped in [*curves.log.breaks, (len(updates), None)]:
        if end > start + 1:
            apart = np.maximum(1, np.diff(number[start:end]))
            samples += float((each[start + 1 : end] * apart).sum())
            seconds += (time[end - 1] if stopped is None else stopped) - time[start]
        start = end
    return samples / seconds if samples and seconds > 0 else None


def _score_table(
    scores: Mapping[str, float], test: Mapping[str, float] | None, shown: str | None
) -> dict[str, Any]:
    """Scores by metric (rows) and split (columns); columns without a value are omitted."""
    table: dict[str, dict[str, float]] = {}
    named = {**{k: v for k, v in scores.items() if split_of(k)[0]}}
    for name, value in (test or {}).items():
        named[f"test_{name.removeprefix('test_')}"] = value
    for name, value in named.items():
        split, bare = split_of(name)
        table.setdefault(bare, {})[split or ""] = value
    splits = [s for s in ("train", "val", "test") if any(s in row for row in table.values())]
    heads = {"train": "training", "val": "validation", "test": "test"}
    rows = [
        {
            "name": score_name(bare),
            "cells": [number(row.get(split)) for split in splits],
            "shown": bare == split_of(shown or "")[1],
        }
        for bare, row in table.items()
    ]
    return {"heads": [heads[split] for split in splits], "rows": rows}


def _notes(results: Mapping[str, Any], curves: Curves) -> list[str]:
    """Warnings for the reader of the result: an odd end, skipped updates, NaN."""
    notes = []
    if "status" not in results:
        notes.append("This run has not written its results: it is still going, or was killed.")
    elif results["status"] == "failed":
        error = results.get("error")
        notes.append(f"The run failed{f': {error}' if error else ''}.")
    elif results.get("reason"):
        notes.append(f"The program stopped the run: {results['reason']}.")
    log = curves.log
    notes += [str(line.get("message", "")) for line in log.notes if not is_outlier(line)]
    notes += summary(log.notes, int(np.nan_to_num(curves.updates.column("updates"), nan=1).sum()))
    skipped = int(curves.skipped.sum())
    skipped -= sum(is_outlier(line) and line["outlier"] == "skip" for line in log.notes)
    if skipped:
        share = percent(skipped / len(curves.updates))
        what = f"{skipped:,} update{'s were' if skipped > 1 else ' was'} skipped"
        notes.append(f"{what} for a gradient that was not finite ({share} of those logged).")
    return notes


def _findings(run: Run) -> list[dict[str, str]] | None:
    """The findings of the data checks and the doctor, the worst first; None without checks."""
    if run.findings is None:
        return None
    found = []
    for each in run.findings:
        entry = {key: str(each.get(key) or "") for key in _FIELDS}
        times = each.get("count")
        entry["times"] = f"seen {times:,} times" if isinstance(times, int) and times > 1 else ""
        entry["tone"] = _SEVERITIES.get(entry["severity"], "")
        found.append(entry)
    rank = {severity: k for k, severity in enumerate(_SEVERITIES)}
    return sorted(found, key=lambda each: rank.get(each["severity"], len(rank)))


def faults(run: Run) -> str:
    """The errors and warnings among the findings in a few words; empty without any."""
    found = [each for each in _findings(run) or [] if each["severity"] in ("error", "warning")]
    codes = ", ".join(dict.fromkeys(each["code"] for each in found))
    several = "" if len(found) == 1 else "s"
    return f"{len(found)} finding{several} ({codes})" if found else ""


def _sections(run: Run, results: Mapping[str, Any], curves: Curves) -> list[Section]:
    sections = []
    monitor = monitored(run, results, curves)
    best = best_place(results, curves, monitor)[0]
    learning = Section("Curves")
    rising = set()
    loss = charts.loss(curves)
    if loss is not None:
        learning.charts.append(Chart("loss", "Loss", loss))
    for k, (title, figure, rises) in enumerate(charts.scores(curves)):
        learning.charts.append(Chart(f"scores-{k}", capital(title), figure))
        if rises:
            rising.add(f"scores-{k}")
    if best is not None and len(curves.evals) > 1:
        for chart in learning.charts:
            charts.mark(chart.figure, best, "best", top=chart.name not in rising)
    optimization = Section("Optimization", _optimization(run, curves))
    residuals = Section("Residuals", *_residuals(results))
    for section in (learning, optimization, residuals, intervals(results), calibration(results)):
        if section.charts:
            sections.append(section)
            section.charts[-1].wide = len(section.charts) % 2 == 1
    return sections


def _optimization(run: Run, curves: Curves) -> list[Chart]:
    found = []
    rate = charts.learning_rate(curves)
    if rate is not None:
        found.append(Chart("learning-rate", "Learning rate", rate))
    given = clip = run.option("clip_norm", "not recorded")
    clip = float(clip) if isinstance(clip, (int, float)) and not isinstance(clip, bool) else None
    norm = charts.gradient_norm(curves, clip)
    if norm is not None:
        share = charts.clipped_share(curves, clip)
        note = "Gradients were not clipped by their norm." if given is None else ""
        if share is not None:
            note = f"{capital(percent(share))} of the updates were clipped to {clip:g}."
        found.append(Chart("gradient-norm", "Gradient norm before clipping", norm, note))
    return found


def _residuals(results: Mapping[str, Any]) -> tuple[list[Chart], str]:
    residuals = results.get("residuals") or {}
    target = np.asarray(residuals.get("target", []), dtype=np.float64)
    prediction = np.asarray(residuals.get("prediction", []), dtype=np.float64)
    finite = np.isfinite(target) & np.isfinite(prediction)
    target, prediction = target[finite], prediction[finite]
    if len(target) < 2:
        return [], ""
    histogram, beyond = charts.residual_histogram(prediction - target)
    error = prediction - target
    note = (
        f"{len(target):,} validation samples: mean error {number(float(error.mean()))}, "
        f"median absolute error {number(float(np.median(np.abs(error))))}."
    )
    outside = f"Not shown: {beyond:,} beyond the ends of the chart." if beyond else ""
    on_line = "On the dashed line, the prediction is equal to the true value."
    scatter = charts.predicted_against_true(target, prediction)
    return [
        Chart("predicted", "Predicted against true", scatter, on_line),
        Chart("residuals", "Distribution of the residuals", histogram, outside),
    ], note


def _pictures(run: Run, results: Mapping[str, Any]) -> list[dict[str, str]]:
    """The pictures that are really there: only files below the run directory are linked."""
    root = run.path.resolve()
    found = []
    for entry in results.get("pictures") or []:
        path = (root / entry["file"]).resolve()
        if path.is_relative_to(root) and path.is_file():
            still = entry.get("still")
            words = {"title": entry.get("title", ""), "caption": entry.get("caption", "")}
            found.append({"file": entry["file"], **words, "still": still or ""})
    return found


def _evaluation(record: Mapping[str, Any]) -> dict[str, Any]:
    """One of the run's later evaluations: of what, and the scores or the file that it made."""
    data, out = record.get("data") or {}, record.get("out") or {}
    facts = {"data": data.get("path"), "digest": str(data.get("digest"))[:16]} if data else {}
    scores = record.get("scores") or {}
    return facts | (scores if scores else {"predictions": out.get("path")})


def _configuration(run: Run) -> dict[str, Any]:
    """The options that were given and the main ones; all others folded. Of a run that does not
    record what was given, those without a value are folded."""
    given = run.environment.get(GIVEN)
    rows = flatten(run.config)
    if isinstance(given, list):
        first = [(name, text) for name, text in rows if name in given]
        first += [each for each in rows if each[0] in _MAIN and each not in first]
        first = [each for each in first if each[0] in given or each[1] != EMPTY]
        what, none = "defaults", "not set"
    else:
        first = [each for each in rows if each[1] != EMPTY]
        what, none = "not set", EMPTY
    rest = [(name, none if text == EMPTY else text) for name, text in rows]
    rest = [each for each, row in zip(rest, rows, strict=True) if row not in first]
    more = f"{len(rest)} more option{'s' * (len(rest) != 1)}: {what}"
    return {"title": "Configuration", "rows": first, "rest": rest, "more": more}


def _tables(run: Run) -> list[dict[str, Any]]:
    facts = {k: v for k, v in run.environment.items() if k not in ("resumed", GIVEN)}
    tables: list[tuple[str, dict[str, Any]]] = [
        ("Data", {k: v for k, v in run.data.items() if k != "conversation"}),
        ("Environment", facts),
        ("Code", code_history(run)),
        ("Evaluations", {k: _evaluation(each) for k, each in evaluations_of(run).items()}),
    ]
    shown = [{"title": t, "rows": flatten(facts), "rest": []} for t, facts in tables if facts]
    return [_configuration(run), *shown] if run.config else shown

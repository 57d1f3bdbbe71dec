"""The results of a tuning as text: a table on the terminal, plain lines, JSON."""

from __future__ import annotations

import dataclasses
import math
import sys
from pathlib import Path
from typing import Any

from torch.utils._pytree import tree_map_only

from trueloop.formatting import broken, number
from trueloop.tune.changes import OTHER
from trueloop.tune.goal import GoalRun
from trueloop.tune.range_test import RangeTest
from trueloop.tune.results import BatchSizeResult, ChangeResult, TuningResults
from trueloop.tune.throughput import Gain

_LEFT = (0, 5, 6)
"""Columns of words."""
_TRAINED = {"batch_size": "batch size", "lr": "learning rate", "updates": "length of the run"}
_HEADS = ("change", "speed", "noise", "samples/s", "GiB", "results", "")


def print_text(findings: TuningResults, seconds: float) -> None:
    """The whole of it, in a table where stdout is a terminal."""
    _print_lines(report_lines(findings))
    print()
    _print_table(findings)
    print()
    _print_lines(conclusion(findings, seconds))


def _print_lines(lines: list[str]) -> None:
    """Broken between words where stdout is a terminal."""
    if not sys.stdout.isatty():
        print("\n".join(lines))
        return
    for line in lines:
        print(broken(line))


def _print_table(findings: TuningResults) -> None:
    """Ruled and in bold where stdout is a terminal; else as plain lines."""
    rows = table_rows(findings)
    if not sys.stdout.isatty():
        print("\n".join(_table([_HEADS, *rows])))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    last = len(_HEADS) - 1
    for k, head in enumerate(_HEADS):
        side: Any = "left" if k in _LEFT else "right"
        table.add_column(head, justify=side, overflow="fold", no_wrap=k < last)
    for row in rows:
        style = "bold" if "proposed" in row[-1] or row is rows[-1] else None
        table.add_row(*map(Text, row), style=style)
    Console(highlight=False).print(table)


def report_lines(findings: TuningResults) -> list[str]:
    """The results of the range test and the batch sizes, and what was not measured."""
    lines = []
    if findings.range_test is not None:
        lines.append(f"learning rate: {findings.range_test.reason}")
    if findings.range_test_of_batch is not None:
        size, test = findings.range_test_of_batch
        lines.append(f"learning rate with batch size {size:,}: {test.reason}")
    lines += _batches(findings)
    lines += [f"not measured: {note}" for note in findings.notes]
    return lines


def _batches(findings: TuningResults) -> list[str]:
    measured = [point for point in findings.points if point.measured is not None]
    if len(findings.points) < 2:
        return []
    rates = ", ".join(f"{p.batch_size:,}: {p.measured.rate:,.0f}" for p in measured if p.measured)
    lines = [f"samples per second by batch size: {rates}"]
    failed = [point for point in findings.points if point.measured is None]
    lines += [f"batch size {p.batch_size:,}: {_reason(p)}" for p in failed]
    largest = measured[-1].batch_size
    if failed and failed[-1].outcome.status == "out of memory":
        lines.append(f"largest batch size that fits, of those tried: {largest:,}")
    return lines


def _reason(of: ChangeResult | BatchSizeResult) -> str:
    outcome = of.outcome
    return outcome.status + (f": {outcome.reason}" if outcome.reason else "")


def table_rows(findings: TuningResults) -> list[tuple[str, ...]]:
    """A row for each change, and for all together."""
    base = findings.base
    rows: list[tuple[str, ...]] = [
        ("as it is", "1", "", f"{base.rate:,.0f}", _gib(base.peak), "", "")
    ]
    kept = {row.change.name for row in findings.kept}
    for row in findings.rows:
        why = row.why()
        if row.change.name in findings.dropped:
            why = "faster by itself, but not together with the others"
        elif row.change.name in kept:
            why = "faster: proposed"
        elif row.helps and row.change.results == OTHER:
            why = "faster: the race decides"
        rows.append(_cells(row, row.change.name, why))
    if findings.together is not None:
        why = f"the factors' product is {findings.product():.2f}"
        rows.append(_cells(findings.together, "all together", why))
    return rows


def _cells(row: ChangeResult, name: str, why: str) -> tuple[str, ...]:
    measured, found = row.measured, row.gain
    if measured is None or found is None:
        return (name, "–", "", "–", "–", row.change.results, why)
    return (
        name, f"{found.factor:.2f}×", _noise(found), f"{measured.rate:,.0f}",
        _gib(measured.peak), row.change.results, why,
    )  # fmt: skip


def _noise(found: Gain) -> str:
    return f"±{100 * found.noise:.0f}%" if found.noise < 1 else "over ±100%"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f}"


def conclusion(findings: TuningResults, seconds: float) -> list[str]:
    """The races, and what is proposed."""
    lines = [
        f"race: {entrant.name}: validation loss {number(entrant.raced.loss)} after "
        f"{entrant.raced.seconds:.0f} s ({entrant.raced.updates:,} updates)"
        if entrant.raced is not None
        else f"race: {entrant.name}: {entrant.outcome.status if entrant.outcome else 'not run'}"
        for entrant in findings.entrants
    ]
    lines += _goal_runs(findings)
    proposal = findings.proposal()
    options = " ".join(_as_option(name, value) for name, value in proposal.options.items())
    lines.append(f"proposed: {options or 'leave it as it is'}")
    lines.append(f"reason: {proposal.why}")
    if proposal.results == OTHER:
        changed = sorted(_TRAINED.keys() & proposal.options.keys(), key=list(_TRAINED).index)
        names = ", ".join(_TRAINED[name] for name in changed)
        lines.append(f"this CHANGES what is trained: a different {names}")
    lines.append(f"measured in {seconds:.0f} s")
    return lines


def _goal_runs(findings: TuningResults) -> list[str]:
    """The result of each run to the goal."""
    lines = []
    for updates, outcome in findings.goal_runs:
        run, head = outcome.value, f"goal {findings.goal}: {updates:,} updates from scratch"
        if not isinstance(run, GoalRun):
            lines.append(f"{head}: {outcome.status}{f': {outcome.reason}' * bool(outcome.reason)}")
        elif math.isnan(run.score):
            what = "out of time" if run.updates < updates else "diverged"
            lines.append(f"{head}: {what} after {run.updates:,}")
        else:
            lines.append(f"{head} reach {run.score:.4g} in {run.seconds:.0f} s")
    return lines


def lines_of_change(findings: TuningResults) -> list[str]:
    """The table as plain lines, for the head of the configuration."""
    return _table([_HEADS, *table_rows(findings)])


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if k in _LEFT else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _as_option(name: str, value: Any) -> str:
    option = "--" + name.replace("_", "-")
    return option if value is True else f"{option} {value}"


def as_json(findings: TuningResults, out: Path, pictures: list[Path]) -> dict[str, Any]:
    """All of it as plain data; NaN is null."""
    proposal = findings.proposal()
    content = {
        "task": findings.facts.task,
        "device": findings.facts.device,
        "cores": findings.facts.cores,
        "base": dataclasses.asdict(findings.base),
        "changes": [_row(row) for row in findings.rows],
        "together": None if findings.together is None else _row(findings.together),
        "product": findings.product(),
        "range_test": _range(findings.range_test),
        "range_test_of_batch": None
        if findings.range_test_of_batch is None
        else {
            "batch_size": findings.range_test_of_batch[0],
            **(_range(findings.range_test_of_batch[1]) or {}),
        },
        "batch_sizes": [
            {
                "batch_size": point.batch_size,
                "status": point.outcome.status,
                "reason": point.outcome.reason,
                "samples_per_second": None if point.measured is None else point.measured.rate,
                "peak_bytes": None if point.measured is None else point.measured.peak,
            }
            for point in findings.points
        ],
        "race": [
            {
                "name": entrant.name,
                "options": entrant.options,
                "status": None if entrant.outcome is None else entrant.outcome.status,
                **({} if entrant.raced is None else dataclasses.asdict(entrant.raced)),
            }
            for entrant in findings.entrants
        ],
        "goal": None if findings.goal is None else dataclasses.asdict(findings.goal),
        "goal_runs": [
            {
                "updates": updates,
                "status": outcome.status,
                **(dataclasses.asdict(outcome.value) if outcome.is_done else {}),
            }
            for updates, outcome in findings.goal_runs
        ],
        "not_measured": findings.notes,
        "proposal": dataclasses.asdict(proposal),
        "config": str(out),
        "pictures": [str(path) for path in pictures],
    }
    plain = tree_map_only(float, lambda x: x if math.isfinite(x) else None, content)
    assert isinstance(plain, dict)
    return plain


def _row(row: ChangeResult) -> dict[str, Any]:
    found: Gain | None = row.gain
    return {
        "name": row.change.name,
        "options": row.change.options,
        "results": row.change.results,
        "status": row.outcome.status,
        "reason": row.outcome.reason,
        "factor": None if found is None else found.factor,
        "noise": None if found is None else found.noise,
        "samples_per_second": None if row.measured is None else row.measured.rate,
        "peak_bytes": None if row.measured is None else row.measured.peak,
        "first_update_seconds": None if row.measured is None else row.measured.warm_seconds,
        "why": row.why(),
    }


def _range(test: RangeTest | None) -> dict[str, Any] | None:
    return None if test is None else dataclasses.asdict(test)

"""`trueloop runs [DIR]`: the runs in a folder, the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from trueloop.cli import OK
from trueloop.cli._one_run import RUNS
from trueloop.errors import ConfigError, nearest

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from trueloop.run.directory import RunSummary

COLUMNS = ("run", "task", "status", "score", "epochs", "updates", "time", "started")
_STYLES = {"finished": "green", "stopped early": "green", "failed": "red", "unreadable": "red"}


def main(argv: Sequence[str]) -> int:
    """List the runs; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop runs",
        usage="trueloop runs [DIR] [options]",
        description="List the runs in a folder and below it, the newest first.",
        epilog="example:\n  trueloop runs --sort score",
    )
    parser.add_option(
        "folder",
        nargs="?",
        default=str(RUNS),
        metavar="DIR",
        help="folder with runs",
    )
    parser.add_option(
        "--sort",
        default="started",
        metavar="COLUMN",
        choices=tuple(COLUMNS),
        help="order of the list",
    )
    given = parser.parse(argv)
    if given.sort not in COLUMNS:
        raise ConfigError(f"unknown column {given.sort!r}: {nearest(given.sort, COLUMNS)}")

    if not given.folder.strip():
        raise ConfigError(f"{given.folder!r} is not a path: write the name of a folder with runs")

    from trueloop.run import Run

    folder = Path(given.folder)
    # Before the first run there is no such folder yet, and that is no mistake.
    found = [] if folder == RUNS and not folder.exists() else Run.find(folder)
    if not found:
        print(f"no runs in {folder} yet: start one with trueloop train spiral")
        return OK
    _print_table(in_order(found, given.sort), folder)
    return OK


def in_order(runs: list[RunSummary], column: str) -> list[RunSummary]:
    """The runs sorted by a column: names from A, dates from the newest, times from the shortest,
    scores from the best. Runs without a value come last."""
    from trueloop.records import direction

    def key(run: RunSummary) -> tuple[object, ...]:
        if column in ("run", "task", "status"):
            return (str(run.path if column == "run" else getattr(run, column) or ""),)
        if column == "score":
            # Scores of one kind stand together: an accuracy and a loss cannot be compared.
            value = run.score
            sign = -1.0 if direction(run.monitor or "loss") == "max" else 1.0
            return (value is None or value != value, run.monitor or "", sign * (value or 0.0))
        value = run.seconds if column == "time" else getattr(run, column)
        return (value is None, value or 0)

    if column == "started":
        return sorted(runs, key=lambda run: run.started or "", reverse=True)
    return sorted(runs, key=key)


def _print_table(runs: list[RunSummary], folder: Path) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        # A file or a pipe has no width: nothing is cut off and nothing wraps.
        console.width = 10_000
    console.print(_table(runs, folder, columns_that_fit(console, runs, folder)))
    for run in runs:
        if run.problem:
            console.print(f"{run.path}: {run.problem}", markup=False, soft_wrap=True)


def columns_that_fit(console: Console, runs: list[RunSummary], folder: Path) -> list[str]:
    """All columns, or those left when the least needed have made room on a narrow terminal."""
    columns = list(COLUMNS)
    endless = console.options.update(max_width=10_000)
    for spare in ("updates", "epochs", "task"):
        width = console.measure(_table(runs, folder, columns), options=endless).maximum
        if width > console.width:
            columns.remove(spare)
    return columns


def _table(runs: list[RunSummary], folder: Path, columns: list[str]) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        right = name in ("epochs", "updates", "time")
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for run in runs:
        cells = _cells(run, folder)
        table.add_row(*(cells[name] for name in columns))
    return table


def _cells(run: RunSummary, folder: Path) -> dict[str, Text]:
    from rich.text import Text

    from trueloop.formatting import duration, number, score_name

    score = "–"
    if run.score is not None:
        score = f"{score_name(run.monitor or '')} {number(run.score)}"
    cells = {
        "run": str(run.path.relative_to(folder)) if run.path != folder else run.path.name,
        # Of a user's own task, the file without its folder.
        "task": "–" if run.task is None else run.task.rpartition("/")[2],
        "status": run.status,
        "score": score.replace("validation ", "val ").replace("training ", "train "),
        "epochs": "–" if run.epochs is None else f"{run.epochs:,}",
        "updates": "–" if run.updates is None else f"{run.updates:,}",
        "time": duration(run.seconds),
        "started": _when(run.started),
    }
    return {
        name: Text(text, style=_STYLES.get(text, "yellow") if name == "status" else "")
        for name, text in cells.items()
    }


def _when(started: str | None) -> str:
    """The start in local time, to the minute."""
    try:
        return f"{datetime.fromisoformat(started or '').astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return "–"

"""One run of `trueloop train`: its directory, and its training."""

from __future__ import annotations

import os
import re
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from trueloop.errors import Interrupted, RunError

if TYPE_CHECKING:
    from trueloop.cli.options import Settings

RUNS = Path("runs")
"""Where runs go that are given no directory."""


def train_one(settings: Settings) -> int:
    """Train one run, or resume it; the exit status."""
    from trueloop import ranks

    # One rank decides: the clock and the folder may look different to each of them.
    path, is_there = ranks.on_main(lambda: _place(settings), "the choice of the run directory")
    if is_there:
        from trueloop.cli._resume_auto import resume_auto

        return resume_auto(path, settings)
    try:
        return _start(path, settings)
    except KeyboardInterrupt as stop:
        if stop.args or path.exists():
            raise
        raise Interrupted(
            getattr(stop, "signal", signal.SIGINT),
            "no update was made, so there is nothing to resume: write the same command again",
        ) from None


def _place(settings: Settings) -> tuple[Path, bool]:
    """Where the run goes, and whether it is there already and is to be gone on with."""
    from trueloop.cli._ranks import is_restarted
    from trueloop.run import claimed
    from trueloop.run.folder import is_run, remove_unborn

    restarted = is_restarted()
    path = settings.run.run
    if path is None and restarted:
        path = _of_this_launch()
    if path is None:
        path = new_path(settings.task, settings.task_class.__name__)
    if restarted or settings.run.resume == "auto":
        if is_run(path):
            return path, True
        if path.is_dir():
            with claimed(path):
                remove_unborn(path)
    check_free(path)
    return path, False


def _of_this_launch() -> Path | None:
    """The newest run in the folder of runs that the same `torchrun` has started, if any."""
    from trueloop.errors import RunError
    from trueloop.run import Run
    from trueloop.run.environment import launched_by

    by = launched_by()
    found = []
    for summary in Run.find(RUNS) if by is not None and RUNS.is_dir() else ():
        try:
            facts = Run(summary.path).environment
        except RunError:  # a damaged one, of somebody else
            continue
        if facts.get("launch") == by:
            found.append((str(facts.get("started")), summary.path.name, summary.path))
    return max(found)[2] if found else None


def _start(path: Path, settings: Settings) -> int:
    """Train a new run at `path`; the exit status."""
    from trueloop import ranks
    from trueloop.cli._doctor import keep_findings, watched_session
    from trueloop.cli._training import train_run
    from trueloop.run import Run
    from trueloop.run.environment import GIVEN
    from trueloop.run.folder import claimed_by_main, make_folder
    from trueloop.run.log import LOG
    from trueloop.run.log_reader import has_lines

    with ExitStack() as stack:
        session = stack.enter_context(watched_session(settings))
        ranks.on_main(lambda: make_folder(path), "the making of the run directory")
        stack.enter_context(claimed_by_main(path))
        facts = session.environment() | {GIVEN: sorted(settings.stated)}
        run = Run.create(path, config=session.settings.config(), environment=facts)
        try:
            run.write_data(session.splits.facts)
            run.write_task(session.task.state())
            keep_findings(session, run)
            return train_run(session, run)
        except BaseException:
            # Not one update: this directory, made a moment ago, would say nothing to anybody.
            if ranks.is_main() and not run.results and not has_lines(path / LOG):
                run.discard()
            raise


def new_path(task: str, class_name: str) -> Path:
    """runs/TASK-DATE-TIME, with a number appended if two runs start in the same second."""
    name = class_name.lower() if ":" in task else task
    stem = RUNS / f"{re.sub(r'[^a-z0-9_-]', '-', name)}-{time.strftime('%Y%m%d-%H%M%S')}"
    path, number = stem, 1
    while path.exists():
        number += 1
        path = stem.with_name(f"{stem.name}-{number}")
    return path


def check_free(path: Path) -> None:
    """Refuse a run directory that is taken or cannot be made, before any data is read."""
    from trueloop.files import special_kind
    from trueloop.run.folder import is_empty

    try:
        if path.is_dir():
            if not is_empty(path):
                raise RunError(
                    f"the run directory {path} exists and is not empty: choose a different "
                    f"--run, or resume that run: trueloop resume {path}"
                )
        elif path.exists():
            what = special_kind(path) or "a file"
            raise RunError(f"{path} is {what}, not a run directory: choose a different --run")
        above = next(parent for parent in (path, *path.parents) if parent.exists())
    except OSError as error:
        raise RunError(
            f"cannot use the run directory {path} ({error.strerror}): choose a different --run"
        ) from None
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        why = "cannot be written" if above.is_dir() else "is a file"
        raise RunError(
            f"cannot create the run directory {path}: {above} {why}; choose a different --run"
        )

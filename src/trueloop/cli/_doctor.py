"""The doctor in `trueloop train` and `resume`: findings in the data and in the run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from trueloop import ranks
from trueloop.cli._session import TrainingSession, open_session
from trueloop.cli.options import Settings
from trueloop.doctor.live.entry.fit_sink import Doctor, one_line
from trueloop.doctor.live.entry.script import on_stage, open_stage
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.formatting import broken
from trueloop.names import printable_line
from trueloop.run import Run
from trueloop.tasks import READY_MADE
from trueloop.tasks.data_findings import DataFinding, skipped_samples
from trueloop.trackers import BY_NAME as TRACKERS

_OURS = ("TL3", "TL4", "TH103")
"""Rules about the model, the loss and the learning rate, which in the ready-made tasks are not the
user's."""


@contextmanager
def watched_session(settings: Settings) -> Iterator[TrainingSession]:
    """The session of `settings`, watched from the making of its data and model on, unless
    --no-doctor was asked for. Afterwards torch has as many threads as before."""
    for name in settings.run.track or ():
        TRACKERS[name].require()  # before the data are read
    threads = torch.get_num_threads()
    try:
        with _watched(settings) as session:
            yield session
    finally:
        torch.set_num_threads(threads)


@contextmanager
def _watched(settings: Settings) -> Iterator[TrainingSession]:
    if not settings.run.doctor:
        yield open_session(settings)
        return
    ignore = _OURS if settings.task in READY_MADE else None
    options = settings.run
    with Doctor(ignore=ignore, on_error=options.on_save_error) as doctor:
        open_stage()
        session: TrainingSession = on_stage(lambda: open_session(settings))
        session.doctor = doctor
        yield session


def keep_findings(session: TrainingSession, run: Run) -> None:
    """Print the findings in the data, and save them and later ones in the run."""
    findings = [_as_object(each, session) for each in session.splits.findings]
    if findings or session.doctor is not None:
        run.add_findings(findings)
    if session.doctor is not None:
        session.doctor.run = run
    if not ranks.is_main():
        return
    if session.task.skipped:
        line = f"trueloop: {skipped_samples(session.task.skipped)}; data.json names all"
        _tell(printable_line(line))
    for note in [] if session.settings.run.quiet else session.task.notes:
        _tell(printable_line(f"trueloop: {note}"))
    for each in findings:
        if each["severity"] != "advice" or not session.settings.run.quiet:
            _tell(one_line(each))


def _tell(line: str) -> None:
    """Print a line; a terminal gets it broken between words."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    print(broken(line) if is_terminal else line, file=sys.stderr)


def _as_object(finding: DataFinding, session: TrainingSession) -> dict[str, Any]:
    path = session.settings.run.data
    return {
        "code": finding.code,
        "name": BY_CODE[finding.code].name,
        "severity": finding.severity,
        "path": None if path is None else str(path),
        "line": None,
        "column": None,
        "message": finding.message,
        "fix": finding.fix,
        "count": 1,
        "place": finding.subject if path is None else f"{path.name}, {finding.subject}",
        "seen": "data",
    }

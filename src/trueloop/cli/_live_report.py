"""The report of a run that is going on, written again every so often."""

from __future__ import annotations

import time
import warnings

from trueloop import ranks
from trueloop.atomic import WriteError
from trueloop.lengths import Interval
from trueloop.loop.clock import Alarm
from trueloop.records import EvalRecord, StepRecord
from trueloop.run.directory import Run
from trueloop.run.html_page import Rewritten
from trueloop.run.log import LOG
from trueloop.run.log_reader import LogReader
from trueloop.run.report import write_report

_SHARE = 50
"""The pages take at most one part of so many of the run's time."""
_RELOAD = (5, 300)
"""Seconds between two reloads of the page, at least and at most."""


class LiveReport:
    """A sink that writes the run's report at its start, and then every so often.

    It reads only what was added to the log since. If a page takes long, the next ones wait.

    Args:
        run: the run, whose log is written before this sink is called.
        every: how often.
    """

    def __init__(self, run: Run, every: Interval) -> None:
        self._run = run
        self._every = every
        self._log = LogReader(run.path / LOG)
        self._alarm = Alarm("report", every)
        self._counts = {"updates": 0.0, "samples": 0.0, "tokens": 0.0, "epochs": 0.0}
        self._began = time.perf_counter()
        self._not_before = 0.0
        self._last: float | None = None
        self._seconds_between = 60.0 * every.amount if every.unit == "minutes" else 30.0
        self._has_failed = False

    def begin(self, *, updates: int, samples: int, tokens: int, seconds: float) -> None:
        """Write the first page; `fit` calls this before the first batch.

        Args:
            updates: updates applied so far.
            samples: samples in them.
            tokens: tokens in them.
            seconds: how long they took.
        """
        self._counts.update(updates=updates, samples=samples, tokens=tokens)
        self._began = time.perf_counter() - seconds
        self._write()

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        """Write the page if it is due.

        Args:
            record: what `fit` hands to its sinks.
        """
        if isinstance(record, EvalRecord) or not record.updated or not ranks.is_main():
            return
        self._counts["updates"] = record.update
        self._counts["samples"] += int(record.samples)
        self._counts["tokens"] += int(record.tokens)
        self._counts["epochs"] = record.epoch
        if self._alarm.rings(self._count()) and time.perf_counter() >= self._not_before:
            self._write()

    def _count(self) -> float:
        if self._alarm.unit == "minutes":
            return time.perf_counter() - self._began
        return self._counts[self._alarm.unit]

    def _write(self) -> None:
        start = time.perf_counter()
        if self._last is not None and self._alarm.unit != "minutes":
            self._seconds_between = start - self._last
        self._last = start
        reload = min(max(round(self._seconds_between), _RELOAD[0]), _RELOAD[1])
        every = str(self._every).removeprefix("1 ")
        try:
            self._log.read()
            write_report(self._run, log=self._log, rewritten=Rewritten(every, reload))
        except WriteError as error:
            if not self._has_failed:
                self._has_failed = True
                warnings.warn(
                    f"{error}; the run continues without a live report",
                    RuntimeWarning,
                    stacklevel=2,
                )
        self._not_before = start + _SHARE * (time.perf_counter() - start)
        self._alarm.set_after(self._count())

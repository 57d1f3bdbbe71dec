"""The doctor as a sink of `fit`: `trueloop.Doctor`."""

from __future__ import annotations

import itertools
import math
import sys
import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trueloop import _options, ranks
from trueloop.checkpoint import WriteError
from trueloop.doctor.live.entry.block import check_first_and_show, configs_for
from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.processes.rank_exchange import RankExchange
from trueloop.doctor.live.session import Session, Watched, running
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.report.json_object import finding_object
from trueloop.doctor.report.terminal import only_in, printable
from trueloop.errors import ConfigError
from trueloop.records import EvalRecord, StepRecord

if TYPE_CHECKING:
    from trueloop.run import Run

FIRST = 500
"""Updates that are watched of a run whose updates are fast."""
_BLOCK = 50
_numbers = itertools.count()
"""Of the doctors that this process has made: those of one run have the same on all ranks."""
_SLOW = 0.01
"""Seconds of an update that watching adds less than 1% to."""
NOWHERE = Location("", 0)
"""Of a finding about the model or the data as a whole: no line of the user's own is to blame."""
_LOOPS = ("fit", "evaluate")
_OF_MODEL_AND_DATA = (
    "TL3", "TL4", "TL511", "TL707", "TL708", "TL710", "TH101", "TH102", "TH103", "TH105",
)  # fmt: skip
"""Rules, by how their codes begin, about what `fit` is given rather than about the loop, which is
`fit` itself."""


class Doctor:
    """A sink for `fit` that watches its run, and reports what is wrong with what it is given.

        with trueloop.Doctor(run) as doctor:
        trueloop.fit(step, train, val, epochs=10, run=run, sinks=[doctor])

    It watches from `with` on: make the model and the data inside to have that watched, too.
    Findings are printed after the epoch in which they were made, kept in the run directory
    (`findings.json`), and shown in its report. With a doctor on each of several ranks, the first
    one prints and keeps what all of them find, and names the rank where only some have the fault.
    What the run computes is bitwise what it computes without.

    Where an update takes 10 ms or more, of which watching takes less than a hundredth, the whole
    run is watched; else its first 500 updates, and then every hook is taken off.

    Args:
        run: where findings are kept; of many ranks, by the main one. It may be set later.
        select: only these rules: codes, names or groups such as "TL3"; None: all.
        ignore: not these rules.
        first: watch so many updates, however long they take; None: as many as above.
        show: print each finding in one line on stderr.
        on_error: `stop` raises where findings cannot be written; `continue` warns, and tries again
            with the next ones.

    Raises:
        ConfigError: a rule is unknown, or does not watch programs; or an option cannot work.
        RunError: findings cannot be written, and `on_error` is `stop`.
    """

    def __init__(
        self,
        run: Run | None = None,
        *,
        select: Iterable[str] | None = None,
        ignore: Iterable[str] | None = None,
        first: int | None = None,
        show: bool = True,
        on_error: str = "stop",
    ) -> None:
        check_first_and_show(first, show)
        _options.choice("on_error", on_error, ("stop", "continue"))
        _check_run(run)
        self.findings: list[Finding] = []
        """The findings, each with its code, name, severity, place, message and fix."""
        self.errors: list[str] = []
        """Errors of the watching itself."""
        self.show = show
        self.on_error = on_error
        self._run = run
        self._configs = configs_for(select, ignore)
        self._first = first
        self._pace = _Pace()
        self._session: Session | None = None
        self._is_own = True
        self._watches_all = False
        """It is not decided yet whether the whole run is watched."""
        self._known: set[tuple[str, Location]] = set()
        self._unwritten: list[dict[str, Any]] = []
        self._peers = RankExchange(next(_numbers))

    @property
    def run(self) -> Run | None:
        """The run directory that findings are kept in."""
        return self._run

    @run.setter
    def run(self, run: Run | None) -> None:
        _check_run(run)
        self._run = run
        if self._session is not None and self._is_own:
            self._session.keep_bundles_in(self._folder())

    def __enter__(self) -> Doctor:
        outer = running()
        self._is_own = outer is None
        if outer is None:
            self._pace, self._watches_all = _Pace(), self._first is None
            self._session = Session(self._configs, first=self._first)
            self._session.keep_bundles_in(self._folder())
            self._session.begin()
        else:  # the whole program is watched, and hears of it all in the end
            self._session = outer
            self._known = {(each.code, each.place) for each in outer.so_far().findings}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.on_error = "continue"  # what has ended the run is the news
        self.end(cut=kind is not None)

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        """At each epoch's scores: report what is new.

        Args:
            record: what `fit` hands to its sinks.
        """
        if self._session is None:
            return
        self._peers.join()
        if isinstance(record, EvalRecord):
            self._take(self._session.so_far())
        elif self._watches_all and record.updated and self._pace.is_over():
            self._watches_all = False
            if self._pace.fastest < _SLOW:
                self._session.end_after_next_update()

    def end(self, *, cut: bool = False) -> None:
        """Stop watching, and report what only the end shows. A second call does nothing.

        Args:
            cut: the run ended early: nothing is concluded from what has not happened.
        """
        session, self._session = self._session, None
        if session is None or not session.is_here:
            return
        watched = session.end(cut=cut) if self._is_own else session.so_far()
        self._take(watched)
        self._peers.leave(failed=cut)
        self._take_from_peers(watched)
        self._write()

    def _folder(self) -> str:
        return "" if self._run is None or not ranks.is_main() else str(self._run.path)

    def _take(self, watched: Watched) -> None:
        """Keep what is new, and say it."""
        self.errors = watched.errors
        for each in watched.findings:
            if (each.code, each.place) in self._known:
                continue
            self._known.add((each.code, each.place))
            finding = of_the_user(each)
            if finding is not None and not self._has(finding):
                self.findings.append(finding)
                self._record(finding, as_object(watched, finding))
        self._take_from_peers(watched)
        self._write()

    def _take_from_peers(self, watched: Watched) -> None:
        """Keep and say what only other ranks have found."""
        for finding in self._peers.received() if ranks.is_main() else ():
            if not self._has(finding):
                self.findings.append(finding)
                self._record(finding, as_object(watched, finding))

    def _has(self, finding: Finding) -> bool:
        return any((f.code, f.place) == (finding.code, finding.place) for f in self.findings)

    def _record(self, finding: Finding, entry: dict[str, Any]) -> None:
        if not ranks.is_main():
            self._peers.hand_on(finding)
            return
        if self._run is not None:
            self._unwritten.append(entry)
        if self.show and sys.stderr is not None:
            print(one_line(entry), file=sys.stderr)

    def _write(self) -> None:
        if self._run is None or not self._unwritten:
            return
        try:
            self._run.add_findings(self._unwritten)
            self._unwritten = []
        except WriteError as error:
            if self.on_error == "stop":
                self._unwritten = []
                raise
            what = f"{error}; the training continues, and the next findings are tried again"
            warnings.warn(what, RuntimeWarning, stacklevel=2)


def _check_run(run: Any) -> None:
    if run is not None and not callable(getattr(run, "add_findings", None)):
        raise ConfigError(
            f"run={_options.shown(run)} is not a run: write Doctor(trueloop.Run(folder)), or leave "
            "it out"
        )


class _Pace:
    """How long updates take, by the fastest of blocks: a block with an evaluation in it does not
    count."""

    def __init__(self) -> None:
        self.fastest = math.inf
        """Seconds an update."""
        self._updates = 0
        self._began = 0.0

    def is_over(self) -> bool:
        """Another update was made; whether but one of the first ones is left."""
        if self._updates % _BLOCK == 0:
            now = time.perf_counter()
            if self._updates:
                self.fastest = min(self.fastest, (now - self._began) / _BLOCK)
            self._began = now
        self._updates += 1
        return self._updates >= FIRST - 1


def of_the_user(finding: Finding) -> Finding | None:
    """The finding as `fit` shows it to its user; None if it is about our own loop.

    What comes to light on a line of ours (of a library, or in the line that calls our loop) is
    about the user's code where a line of that is involved, and about the model or the data where
    the rule is.
    """
    is_about_them = finding.code.startswith(_OF_MODEL_AND_DATA)
    if not user_frames.is_ours(finding.place.path):
        called = source_map.callee_of(finding.place)[0].rpartition(".")[2]
        return None if called in _LOOPS and not is_about_them else finding
    for related in finding.related:
        if not user_frames.is_ours(related.place.path):
            return replace(finding, place=related.place, related=(), remedies=())
    if is_about_them:
        return replace(finding, place=NOWHERE, related=(), remedies=())
    return None


def as_object(watched: Watched, finding: Finding) -> dict[str, Any]:
    """The finding as `findings.json` has it."""
    if not finding.place.path:
        place = {"path": None, "line": None, "column": None, "place": "this run"}
        entry = {
            "code": finding.code,
            "name": finding.name,
            "severity": finding.severity,
            **place,
            "message": finding.message,
            "fix": finding.fix,
            "count": finding.count,
        }
    else:
        entry = finding_object(watched, finding)
        entry["place"] = f"{entry['path']}:{entry['line']}"
    if finding.seen_in:
        entry["seen_in"] = finding.seen_in
    return {**entry, "seen": "live"}


def one_line(entry: dict[str, Any]) -> str:
    """A finding for the terminal."""
    fix = f" {entry['fix']}" if entry["fix"] else ""
    where = (
        f"{entry['place']} ({only_in(entry['seen_in'])})" if "seen_in" in entry else entry["place"]
    )
    return printable(
        f"trueloop: {entry['severity']} {entry['code']}, {where}: {entry['message']}{fix} "
        f"(trueloop explain {entry['code']})"
    )

"""The processes that one report is about: this one, those that it starts, and the other ranks that
`torchrun` started beside it."""

from __future__ import annotations

import os
import signal
import sys
import threading

from trueloop.doctor.live.processes import report_exchange
from trueloop.doctor.live.processes.children import ChildProcesses, Order
from trueloop.doctor.live.processes.rank_reports import RankReports
from trueloop.doctor.live.session import Session, Watched


class Participants:
    """Watches with `session`, in this process and in those that it starts.

    Args:
        session: of this process.
        select: codes of the rules that are asked for; None: all.
        ignore: of those that are not.
        first: watch so many updates of each process; None: all.
        fail_fast: each process ends at its first error.
        speed: report where the time goes.
    """

    def __init__(
        self,
        session: Session,
        *,
        select: frozenset[str] | None,
        ignore: frozenset[str] | None,
        first: int | None,
        fail_fast: bool,
        speed: bool,
    ) -> None:
        self._session = session
        self._followed = ChildProcesses(
            Order(
                folder="",
                home=os.getcwd(),
                select=None if select is None else tuple(sorted(select)),
                ignore=None if ignore is None else tuple(sorted(ignore)),
                first=first,
                fail_fast=fail_fast,
                speed=speed,
                bundles=session.bundles,
            )
        )
        self._meeting: RankReports | None = None
        self._has_met = False
        self._own: Watched | None = None
        self._report: Watched | None = None
        self._reports = False

    def begin(self) -> None:
        """Watch from now on."""
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            self._session.heard = self._heard
        self._session.begin()
        self._followed.begin()

    def leave(self) -> None:
        """Watch no longer; the other ranks may leave, too."""
        self._session.leave()
        self._followed.end()
        if self._meeting is not None and self._reports:
            self._meeting.has_reported()

    def was_stopped(self) -> bool:
        """This process, or one that it started, was ended at its first error."""
        parts = self._followed.parts()
        return self._session.stopped or any(part.watched.stopped for part in parts)

    def report(self, *, cut: bool) -> Watched | None:
        """The findings of all processes; None on a rank that does not report.

        `cut`: the program did not come to its own end.
        """
        if self._own is None:
            self._own = self._session.end(cut=cut)
            self._own.errors += self._followed.errors
            self._report = self._together(cut or self._session.stopped)
        return self._report

    def _together(self, failed: bool) -> Watched | None:
        assert self._own is not None
        own = report_exchange.together(self._part(self._own, ended=True), self._followed.parts())
        part = self._part(own, ended=True)
        meeting = self._met()
        if meeting is None:
            self._reports = os.environ.get("RANK", "0") == "0"
            return own if self._reports else None
        if failed:
            _ignore_sigterm()
        meeting.leave(part)
        self._reports = meeting.reports_here(failed=failed)
        return report_exchange.together(part, meeting.others()) if self._reports else None

    def _part(self, watched: Watched, *, ended: bool) -> report_exchange.ProcessReport:
        rank = self._session.rank
        if rank is None and self._meeting is not None:
            rank = self._meeting.rank
        return report_exchange.ProcessReport("the main process", rank, ended, watched)

    def _met(self) -> RankReports | None:
        if not self._has_met and "torch" in sys.modules:
            self._has_met = True
            self._meeting = RankReports.find()
        return self._meeting

    def _heard(self) -> None:
        """The other ranks shall know of it even if this one is killed."""
        meeting = self._met()
        if meeting is not None and self._session.is_here:
            meeting.leave(self._part(self._session.so_far(), ended=False))


def _ignore_sigterm() -> None:
    """As soon as one rank has failed, the launcher asks all of them to end: this one is about to,
    and has the report to write. What a handler of the program's does is left to it."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

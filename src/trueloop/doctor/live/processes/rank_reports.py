"""Ranks that `torchrun` started: one report of what all of them have found.

Each rank leaves what it has found in the store of the launcher, which outlives the program's own
process group. The first rank reports when all have ended. A rank that fails does it at once, for
the launcher will then end the others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from trueloop.doctor.live.processes import report_exchange

WAIT = 15.0
"""Seconds that the first rank waits for the others, when it has come to its own end."""
WAIT_FAILED = 1.0
"""The same of a rank that has failed."""
WAIT_REPORTED = 5.0
"""Seconds that it waits for the report of a different process."""
_NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LOST: Any = (RuntimeError, ValueError, OSError)
"""The launcher's store does not answer."""


class RankReports:
    """The reports that the ranks leave for each other."""

    def __init__(self, rank: int, count: int, store: Any) -> None:
        self.rank = rank
        self.count = count
        self._store = store

    @classmethod
    def find(cls) -> RankReports | None:
        """The one that this process takes part in; None for a single process, and where the
        launcher has no store. Imports torch."""
        given = os.environ
        shares = given.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        if not shares or any(not given.get(name) for name in _NEEDED):
            return None
        rank, count = int(given["RANK"]), int(given["WORLD_SIZE"])
        if count < 2:
            return None
        from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

        try:
            store = TCPStore(
                given["MASTER_ADDR"],
                int(given["MASTER_PORT"]),
                is_master=False,
                timeout=timedelta(seconds=5),
                wait_for_workers=False,
            )
        except _LOST:
            return None
        restart = given.get("TORCHELASTIC_RESTART_COUNT", "0")
        return cls(rank, count, PrefixStore(f"trueloop/watch/{restart}", store))

    def leave(self, part: report_exchange.ProcessReport) -> None:
        """Let the other ranks have what was found here."""
        with suppress(*_LOST):
            self._store.set(f"part/{self.rank}", report_exchange.as_text(part))
            if part.ended:
                self._store.set(f"ended/{self.rank}", "")

    def reports_here(self, *, failed: bool) -> bool:
        """Whether it is this rank that reports what all have found; waits for the others. One that
        has failed and does not report leaves after the report: the launcher ends the others as soon
        as it has left."""
        if self.rank and not failed:
            return False
        try:
            self._await(self._all_ended, WAIT_FAILED if failed else WAIT)
            if self._store.add("reporters", 1) == 1:  # ranks may fail together
                return True
            self._await(lambda: bool(self._store.check(["reported"])), WAIT_REPORTED)
        except _LOST:
            return self.rank == 0
        return False

    def has_reported(self) -> None:
        """Let the others leave."""
        with suppress(*_LOST):
            self._store.set("reported", "")

    def _await(self, has_come: Callable[[], bool], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not has_come() and time.monotonic() < until:
            time.sleep(0.05)

    def _all_ended(self) -> bool:
        return all(self._store.check([f"ended/{rank}"]) for rank in range(self.count))

    def others(self) -> list[report_exchange.ProcessReport]:
        """The reports of the other ranks."""
        found = []
        for rank in range(self.count):
            with suppress(*_LOST):
                if rank != self.rank and self._store.check([f"part/{rank}"]):
                    found.append(report_exchange.read(self._store.get(f"part/{rank}").decode()))
        return found

"""The doctors of several ranks: the first rank keeps and prints what all of them have found.

Nothing waits for it during the run: each finding is put into the store of the process group, and
the first rank looks there after each of its epochs. At the end it waits for the others, a few
seconds at most.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import torch.distributed as dist

from trueloop import ranks
from trueloop.doctor.live.processes import report_exchange
from trueloop.doctor.model.findings import Finding

WAIT = 5.0
"""Seconds that the first rank waits for what the others find in the end."""
WAIT_FAILED = 0.5
"""The same, where an exception has ended the run."""
_LOST: Any = (RuntimeError, ValueError, OSError)
"""The store does not answer: its process has ended, or the group is gone."""


class RankExchange:
    """The doctors of one run, one on each rank; the `number`-th that a process has made."""

    def __init__(self, number: int) -> None:
        self._prefix = f"trueloop/doctor/{number}/"
        self._has_joined = False
        self._read = 0
        """Findings that were received."""

    def join(self) -> None:
        """Take part from now on, if there is a process group by now."""
        if not self._has_joined and ranks.is_distributed():
            self._has_joined = True
            if not ranks.is_main():
                self._add("joined", 1)

    def hand_on(self, finding: Finding) -> None:
        """Let the first rank know of it."""
        self.join()
        if self._has_joined:
            number = self._add("count", 1)
            self._set(str(number), f"{ranks.rank()} {report_exchange.finding_text(finding)}")

    def received(self) -> list[Finding]:
        """The findings that the other ranks have sent since the last call, each once, with the
        ranks that have it."""
        self.join()
        found: dict[tuple[object, ...], tuple[Finding, list[str]]] = {}
        until = self._add("count", 0) if self._has_joined else 0
        while self._read < until:
            text = self._get(str(self._read + 1))
            if text is None:
                break  # its number is taken, and it is on its way
            self._read += 1
            rank, _, message = text.partition(" ")
            finding = report_exchange.read_finding(message)
            found.setdefault((finding.code, finding.place), (finding, []))[1].append(f"rank {rank}")
        return [report_exchange.seen_in(finding, labels) for finding, labels in found.values()]

    def leave(self, *, failed: bool) -> None:
        """Nothing more is handed on; the first rank waits for the others to say the same."""
        if not self._has_joined:
            return
        if not ranks.is_main():
            self._add("left", 1)
            return
        until = time.monotonic() + (WAIT_FAILED if failed else WAIT)
        while self._add("left", 0) < self._add("joined", 0) and time.monotonic() < until:
            time.sleep(0.02)

    # ------------------------------------------------------------------ the store

    def _store(self) -> Any:
        return ranks.store() or dist.distributed_c10d._get_default_store()

    def _add(self, key: str, amount: int) -> int:
        with suppress(*_LOST):
            return int(self._store().add(self._prefix + key, amount))
        return 0

    def _set(self, key: str, text: str) -> None:
        with suppress(*_LOST):
            self._store().set(self._prefix + key, text)

    def _get(self, key: str) -> str | None:
        with suppress(*_LOST):
            store = self._store()
            if store.check([self._prefix + key]):
                text: str = store.get(self._prefix + key).decode()
                return text
        return None

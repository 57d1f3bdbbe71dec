"""`compile="auto"`: the plain and the compiled update in turns, until it is known which is faster.

Updates are timed in pairs, one of each kind, so that what else the machine does meets both. What is
timed is a call that ends a window: its last micro-batch and the update.
"""

from __future__ import annotations

import statistics
import time

import torch

from trueloop.step.capturable import EAGER, UPDATE

PAIRS = 8
"""Pairs of updates that are timed, after one pair that warms up."""
SECONDS = 10.0
"""Time of timed updates after which it is decided by what there is, of two pairs at least."""


class CompileTrial:
    """Which of the two ways to make an update is the faster one."""

    def __init__(self, device: torch.device) -> None:
        self.choice: str | None = None
        """`update` or `eager`, the compiled update or the plain one; None before it is known."""
        self.seconds: dict[str, list[float]] = {UPDATE: [], EAGER: []}
        self._device = device
        self._turn = EAGER
        self._started: float | None = None

    def begins_plain(self, closes: bool) -> bool:
        """Before a micro-batch, which `closes` its window or not: whether it is to be plain."""
        if self.choice is not None:
            return self.choice == EAGER
        if closes:
            self._started = self._now()
        return self._turn == EAGER

    def end(self) -> str:
        """An update has ended: it was the turn's. What was found out, once it is."""
        if self._started is None:
            return ""
        self.seconds[self._turn].append(self._now() - self._started)
        self._started = None
        self._turn = UPDATE if self._turn == EAGER else EAGER
        return self._decide() if self._turn == EAGER else ""

    def _decide(self) -> str:
        # The first pair compiles and warms up.
        plain, compiled = self.seconds[EAGER][1:], self.seconds[UPDATE][1:]
        spent = sum(plain) + sum(compiled)
        if len(plain) < PAIRS and (len(plain) < 2 or spent <= SECONDS):
            return ""
        ours, theirs = statistics.median(compiled), statistics.median(plain)
        self.choice = UPDATE if ours < theirs else EAGER
        kept = "compiled" if self.choice == UPDATE else "plain"
        return (
            f"a compiled update takes {shown(ours)}, a plain one {shown(theirs)}: {kept} updates "
            "are kept"
        )

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def shown(seconds: float) -> str:
    """A time in the unit in which it is a number from 1 on."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"

"""A run to a goal: how short a training may be whose monitored score still reaches one.

A schedule ends where its run ends, so that a short run is a complete training and not the beginning
of a long one: its rate has fallen by its end, and its scores have come up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from trueloop.errors import NonFiniteError, OutlierError
from trueloop.tune.setup import Setup

MARGIN = 1.25
"""Times the updates that reached the goal are proposed: a different seed may need more of them,
and the validation set is a sample."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A score, and the value of it that is enough."""

    monitor: str
    value: float
    mode: str
    """`min` or `max`."""

    def is_reached(self, score: float) -> bool:
        """Whether the score is as good; NaN never is."""
        return score >= self.value if self.mode == "max" else score <= self.value

    def __str__(self) -> str:
        return f"{self.monitor} {self.value:g}"


@dataclass(frozen=True, kw_only=True)
class GoalRun:
    """A training of so many updates from start to end."""

    updates: int
    score: float
    """At its end; NaN of one that diverged, or that was not over in its time."""
    seconds: float
    """Of training, without the score."""


def run_to_end(setup: Setup, updates: int, seconds: float, score: Callable[[], float]) -> GoalRun:
    """Train `setup`, whose schedule ends after `updates`, for them all, and score it; give up after
    so many seconds."""
    setup.take_threads()
    began, done = time.monotonic(), 0
    try:
        while done < updates and time.monotonic() - began < seconds:
            setup.update()
            done += 1
        setup.wait()
        spent = time.monotonic() - began
        value = score() if done == updates else math.nan
    except (NonFiniteError, OutlierError):
        spent, value = time.monotonic() - began, math.nan
    return GoalRun(updates=done, score=value, seconds=spent)

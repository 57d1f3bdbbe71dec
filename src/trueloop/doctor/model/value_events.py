"""Events about a program's own numbers: scores, counts and coefficients (in source)."""

from __future__ import annotations

from dataclasses import dataclass

from trueloop.doctor.model.events import Event


@dataclass(eq=False, kw_only=True)
class DecayedAgain(Event):
    """A variable was multiplied by a function of a loop's count, and so was its last value."""

    variable: str
    """How it is written: `self.epsilon`."""
    count: str
    """How the count is written: `epoch`."""

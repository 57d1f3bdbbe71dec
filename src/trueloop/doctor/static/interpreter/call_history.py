"""The calls of one run: what they came to, and what has changed since a call began."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from trueloop.doctor.model.events import (
    AttributeSet,
    EscapedToUnknown,
    Event,
    FunctionalDropout,
    GraphEscaped,
    LoopEntered,
    LoopLeft,
)
from trueloop.doctor.model.table_events import ScaledByHand, Sliced
from trueloop.doctor.static.interpreter.values import Value

_ALIKE = frozenset(
    {AttributeSet, EscapedToUnknown, FunctionalDropout, GraphEscaped, ScaledByHand, Sliced}
)
"""Events that are the same for each call of a function with arguments of the same kinds."""


@dataclass(slots=True)
class CallSummary:
    """The knowledge about one function with arguments of certain kinds."""

    reads: int = 0
    wanted: int = 1
    """Calls that are read before the result is taken over."""
    fit: bool = True
    result: Value | None = None
    latest: Value | None = None
    """The result itself of the last call that was read."""
    same: bool = False
    """It is the same object each time."""
    given: list[Value] = field(default_factory=list)
    """The arguments of the call that the result is of."""


@dataclass(slots=True)
class CallHistory:
    """The calls of a run so far."""

    summaries: dict[Hashable, CallSummary] = field(default_factory=dict)
    """By function and kinds of arguments."""
    kinds: dict[int, int] = field(default_factory=dict)
    """Functions by the identity of their node -> how many kinds of calls there were."""
    heard: int = 0
    """Events that are not the same for each call of a function."""
    written: int = 0
    """Writes to attributes and containers."""
    extended: list[int] = field(default_factory=list)
    """The containers that became longer, by identity."""

    def hear(self, kind: type[Event], fields: dict[str, Any]) -> None:
        """Count an event, unless it only repeats what an earlier call has shown."""
        if kind is LoopEntered or kind is LoopLeft:
            self.heard += fields["loop"].kind != "other"
        elif kind not in _ALIKE:
            self.heard += 1

"""The calls of one run: what they came to, and what has changed since a call began."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
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
from trueloop.doctor.model.things import Model, Tensor
from trueloop.doctor.static.interpreter.values import Class, Value

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
    guards: frozenset[str] = frozenset()
    """The open conditions around that call."""
    attributes: list[dict[str, Value]] = field(default_factory=list)
    """The attributes of each argument at that call."""
    layer: tuple[Model, ...] = ()
    """The layer that it was of, with the parts that it had then."""


@dataclass(slots=True)
class ConstructorPattern:
    """The result of a module's constructor with arguments of certain kinds."""

    reads: int = 0
    fit: bool = True
    made: Model | None = None
    args: tuple[Value, ...] = ()
    events: tuple[Event, ...] = ()
    """As they were when it had ended; of calls and turns only those within it."""
    guards: frozenset[str] = frozenset()
    """The open conditions around the call."""
    turns: int = 0
    """The turns of loops in it."""
    copies: int = 0
    """How many things and containers it made."""


@dataclass(slots=True)
class CallHistory:
    """The calls of a run so far."""

    summaries: dict[Hashable, CallSummary] = field(default_factory=dict)
    """By function and kinds of arguments."""
    patterns: dict[Hashable, ConstructorPattern] = field(default_factory=dict)
    """By class and kinds of arguments."""
    constructors: dict[int, set[Hashable]] = field(default_factory=dict)
    """Classes by identity -> the kinds of arguments that there were."""
    kinds: dict[int, int] = field(default_factory=dict)
    """Functions by the identity of their node -> how many kinds of calls there were."""
    heard: int = 0
    """Events that are not the same for each call of a function."""
    written: list[int] = field(default_factory=list)
    """Writes to attributes and containers: of a container its number, 0 for anything else."""
    changed: list[int] = field(default_factory=list)
    """Writes to attributes: the numbers of the objects that have them, 0 for those without one."""
    settled: int = 0
    """Definitions that have waited until somebody asked for their name."""
    filled: list[int] = field(default_factory=list)
    """Tensors that elements were written to, by identity."""
    extended: list[int] = field(default_factory=list)
    """The containers that became longer, by identity."""
    counts_asked: int = 0
    """Tests and remainders of a loop's count, whose outcome changes from turn to turn."""

    def write(self, owner: object = None, *, changed: int | None = None) -> None:
        """Note a write to an attribute, an entry or an element. `changed`: the number of the object
        that has the attribute."""
        if changed is not None:
            self.changed.append(changed)
        if isinstance(owner, Tensor):
            self.filled.append(id(owner))
        else:
            self.written.append(getattr(owner, "born", 0))

    def empty(self) -> None:
        """Note that a list or a count begins again, which every call has to do: turns fill it."""
        self.heard += 1

    def hear(self, kind: type[Event], fields: dict[str, Any]) -> None:
        """Count an event, unless it only repeats what an earlier call has shown."""
        if kind is LoopEntered or kind is LoopLeft:
            self.heard += fields["loop"].kind != "other"
        elif kind not in _ALIKE:
            self.heard += 1


@dataclass(slots=True)
class Reach:
    """Code that a run may have come to without reading it."""

    classes_made: dict[int, Class] = field(default_factory=dict)
    """The classes of the user's that objects were made of, by identity."""
    given_away: set[int] = field(default_factory=set)
    """Classes that were handed to code which cannot be read, by the identity of their node."""
    unresolved: set[str] = field(default_factory=set)
    """Names of functions and methods that were called and could not be read."""
    passed_alone: dict[str, set[int]] = field(default_factory=dict)
    """Backwards in branches that one option adds (`if args.adversarial:`), by its key."""
    engines: list[Value] = field(default_factory=list)
    """Ignite's, in the order in which they were made."""
    trains_under: frozenset[str] | None = None
    """The open conditions that all backwards of the run have in common; None without any."""
    searched: bool = False
    """One of several was looked for by a name."""
    overridden: dict[str, bool] = field(default_factory=dict)
    """Options that set the text of a different option, by their key, and their value in the run:
    `if args.deepspeed: args.backend = "deepspeed"`."""
    handed_on: list[Value] = field(default_factory=list)
    """The result of the function that the run began with, and its object's attributes."""

    def train(self, guards: Iterable[str]) -> None:
        """Note a backward, and the open conditions around it."""
        under = frozenset(guards)
        self.trains_under = under if self.trains_under is None else self.trains_under & under

    def override(self, options: str, guards: Sequence[str]) -> None:
        """Note that a text is written to one of the `options`, given by their key."""
        key = guards[-1].removeprefix("not ") if guards else ""
        if key.startswith(f"{options}."):
            self.overridden[key] = key == guards[-1]

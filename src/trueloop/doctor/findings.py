"""What the doctor has to say, about a place in the user's own code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "advice"]


class Place(NamedTuple):
    """A stretch of the user's code: an expression, or a statement."""

    path: str
    line: int
    """From 1."""
    column: int = 1
    """From 1, in characters."""
    end_line: int = 0
    """Last line of it; 0 where only a line is known (live)."""
    end_column: int = 0
    """Column behind its last character, from 1."""
    function: str = ""
    """Qualified name of the function it stands in; empty at the top of a module."""


class Related(NamedTuple):
    """Another line that is involved, and its part in it."""

    place: Place
    label: str


class Move(NamedTuple):
    """A remedy: move the statement at `what` directly before or after the statement at `target`.

    Both stand in one function. A target in another block moves the statement into that block.
    """

    what: Place
    target: Place
    where: Literal["before", "after"]


class Insert(NamedTuple):
    """A remedy: add `text`, one or more whole lines, before or after the statement at `target`."""

    text: str
    target: Place
    where: Literal["before", "after"]


class Replace(NamedTuple):
    """A remedy: put `text` in place of the expression at `what`; `{}` in it is the old text."""

    what: Place
    text: str


class Delete(NamedTuple):
    """A remedy: remove the statement at `what`."""

    what: Place


Remedy = Move | Insert | Replace | Delete


@dataclass(frozen=True)
class Finding:
    """One fault at one place."""

    code: str
    """Stable code of the rule, `TL101`."""
    name: str
    """Name of the rule, `zero-grad-after-backward`."""
    severity: Severity
    place: Place
    message: str
    """What happens here and why it is wrong, in one or two sentences."""
    fix: str | None = None
    """What to do, in one sentence."""
    related: tuple[Related, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    """The edit that `--fix` makes: only where there is one safe way; empty otherwise."""
    count: int = field(default=1, compare=False)
    """How often it was seen (live)."""

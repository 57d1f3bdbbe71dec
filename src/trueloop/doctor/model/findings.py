"""A finding of the doctor, about a place in the user's own code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Severity = Literal["error", "warning", "advice"]
GRAVITY: dict[Severity, int] = {"advice": 0, "warning": 1, "error": 2}


class Location(NamedTuple):
    """A stretch of the user's code: an expression, or a statement.

    Attributes:
        path: of the file.
        line: from 1.
        column: from 1, in characters.
        end_line: last line of it; 0 where only a line is known (live).
        end_column: the column after its last character, from 1.
        function: qualified name of the function that contains it; empty at the top of a module.
    """

    path: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    function: str = ""


SAME_HERE = "the same here"
"""The label of a line that has the same fault as the finding's own."""


class Related(NamedTuple):
    """Another line that is involved, and its part in it."""

    place: Location
    label: str


class Move(NamedTuple):
    """A remedy: move the statement at `what` directly before or after the statement at `target`.

    Both are in one function. A target in a different block moves the statement into that block.
    """

    what: Location
    target: Location
    where: Literal["before", "after"]


class Insert(NamedTuple):
    """A remedy: add `text`, one or more whole lines, before or after the statement at `target`."""

    text: str
    target: Location
    where: Literal["before", "after"]


class Replace(NamedTuple):
    """A remedy: put `text` in place of the expression at `what`; `{}` in it is the old text."""

    what: Location
    text: str


class Delete(NamedTuple):
    """A remedy: remove the statement at `what`."""

    what: Location


Remedy = Move | Insert | Replace | Delete


@dataclass(frozen=True)
class Finding:
    """One fault at one place.

    Attributes:
        code: stable code of the rule, `TL101`.
        name: name of the rule, `zero-grad-after-backward`.
        severity: `error`, `warning` or `advice`.
        place: where, in the user's own code.
        message: what happens here and why it is wrong, in one or two sentences.
        fix: what to do, in one sentence.
        related: other lines that are involved, each with its part in it.
        remedies: the edit that `--fix` makes: only where there is one safe way; empty otherwise.
        count: how often it was seen (live).
        seen_in: which of several processes have it (`rank 1`); empty where all that train do.
        without_callers: it was found in a function that was read by itself (`check`).
    """

    code: str
    name: str
    severity: Severity
    place: Location
    message: str
    fix: str | None = None
    related: tuple[Related, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    count: int = field(default=1, compare=False)
    seen_in: str = field(default="", compare=False)
    without_callers: bool = field(default=False, compare=False)

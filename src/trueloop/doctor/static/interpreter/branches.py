"""Open conditions: how one run decides them, and where they were met."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from trueloop.doctor.static.interpreter.values import Module


@dataclass(slots=True)
class BranchPolicy:
    """How one run decides what the source leaves open."""

    optional: bool = True
    """Take the branches that an option switches on."""
    forced: dict[str, bool] = field(default_factory=dict)
    """Decisions made in advance, by the condition's key."""


@dataclass(slots=True)
class OpenBranch:
    """An open condition as it was met."""

    key: str
    negated: bool
    branches: tuple[list[ast.stmt], list[ast.stmt]]
    module: Module
    """The file that contains it."""


def limit_in(key: str, beginning: str) -> float | None:
    """The number that a comparison ends with, if it begins so."""
    if not key.startswith(beginning):
        return None
    try:
        return float(key[len(beginning) :])
    except ValueError:
        return None

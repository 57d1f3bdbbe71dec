"""From what the programs printed to a verdict."""

from __future__ import annotations

import builtins
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from trueloop.doctor.lab.claims import Claim, ClaimOutcome
from trueloop.doctor.model.findings import Finding

Figures = Mapping[str, Any]
"""The output of one program under one seed: numbers, and lists of numbers."""
UNDECIDED = "undecided"
_NAMES: dict[str, Any] = {
    name: getattr(builtins, name) for name in ("abs", "min", "max", "sum", "len", "all", "any")
} | {
    "round": round,
    "math": math,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "mean": lambda values: sum(values) / len(values),
}


@dataclass
class LabFindings:
    """The doctor's findings in a program of the lab."""

    finding: Finding
    by: tuple[str, ...]
    """"check", "watch", or both."""

    @property
    def is_alarm(self) -> bool:
        return self.finding.severity != "advice"


@dataclass
class MeasuredClaim:
    """A claim, measured."""

    claim: Claim
    seeds: Sequence[int]
    right: list[Figures]
    """By seed."""
    wrong: list[Figures]
    found: list[LabFindings] = field(default_factory=list)
    """In the wrong program."""
    convinced: str = ""
    """The output of the program for the reader's own trials."""

    def __post_init__(self) -> None:
        self.held = {
            each.name: [
                is_true(each.test, right, wrong)
                for right, wrong in zip(self.right, self.wrong, strict=True)
            ]
            for each in self.claim.tests
        }
        """For each statement, whether it was true under each seed."""

    @property
    def outcome(self) -> ClaimOutcome | None:
        """The first verdict whose statements were true under every seed; None without one."""
        for outcome in self.claim.verdicts:
            if all(all(self.held[name]) for name in outcome.needs):
                return outcome
        return None

    @property
    def verdict(self) -> str:
        return self.outcome.verdict if self.outcome is not None else UNDECIDED

    @property
    def says(self) -> str:
        if self.outcome is not None:
            return self.outcome.says
        return "The seeds do not agree: here this measurement decides nothing."


def is_true(test: str, right: Figures, wrong: Figures) -> bool:
    """Whether a statement is true of one seed's figures. A missing figure is a mistake of the
    claim's and raises."""
    sides = {"right": SimpleNamespace(**right), "wrong": SimpleNamespace(**wrong)}
    return bool(eval(test, {"__builtins__": {}}, _NAMES | sides))


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """(median, lowest, highest); NaN counts as the highest of all."""
    ordered = sorted(values, key=lambda value: math.inf if math.isnan(value) else value)
    middle = len(ordered) // 2
    if len(ordered) % 2 or math.isnan(ordered[middle]):
        median = ordered[middle]
    else:
        median = (ordered[middle - 1] + ordered[middle]) / 2
    return median, ordered[0], ordered[-1]

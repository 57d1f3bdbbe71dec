"""The parts of a file that were not read, and why: every omission is reported."""

from __future__ import annotations

import os
import traceback
from dataclasses import dataclass, field

from trueloop.doctor.model.findings import Location
from trueloop.doctor.static.inputs.discovery import Unread
from trueloop.doctor.static.interpreter.step_budget import STEPS_A_FILE
from trueloop.errors import cut

SHOWN = 3
"""Names that are listed before the rest is counted."""


@dataclass
class Gaps:
    """The omissions while a file was read."""

    cuts: list[tuple[Location, int]] = field(default_factory=list)
    """Where runs were stopped, each with its limit of steps; 0 where those of the file ran out."""
    cut_within: list[Location] = field(default_factory=list)
    """The calls that led to where runs were stopped, innermost first."""
    not_begun: list[tuple[str, int]] = field(default_factory=list)
    """Functions that no run began with, each with its line: the file's steps were used up."""
    blocks: list[int] = field(default_factory=list)
    """First lines of the programs of a document that were not begun."""
    refused: list[tuple[Location, str]] = field(default_factory=list)
    """Calls and imports that end the program, each with the reason."""
    left_out: dict[str, Location] = field(default_factory=dict)
    """The functions that were not entered, with the first place of each."""
    not_followed: dict[str, str] = field(default_factory=dict)
    """Files that are imported and could not be read, each with the reason."""
    faults: list[str] = field(default_factory=list)
    """Our own errors that ended a run."""

    def add(self, other: Gaps) -> None:
        """Take over the skipped parts of a second program of the same document."""
        self.cuts += other.cuts
        self.cut_within += other.cut_within
        self.not_begun += other.not_begun
        self.blocks += other.blocks
        self.refused += other.refused
        self.left_out = other.left_out | self.left_out
        self.not_followed |= other.not_followed
        self.faults += other.faults

    def add_fault(self, error: Exception) -> None:
        """Note an error of our own in one line."""
        frame = traceback.extract_tb(error.__traceback__)[-1]
        what = cut(" ".join(f"{type(error).__name__}: {error}".split()), 200)
        self.faults.append(f"{what}, {os.path.basename(frame.filename)}:{frame.lineno}")

    def unread_file(self, path: str) -> Unread | None:
        """All of it in one line about the file at the absolute `path`; None if there is nothing."""
        parts = [*self._runs(path), *self._rest(path)]
        if not parts:
            return None
        line, function = self._reached(path)
        return Unread(path, line, function, f"not read to its end: {'; '.join(parts)}")

    def _runs(self, path: str) -> list[str]:
        parts = []
        if self.cuts:
            place, steps = self.cuts[0]
            many = len(self.cuts) > 1
            which = f"{len(self.cuts)} runs were" if many else "a run was"
            limit = f"{steps:,} steps" if steps else f"the {STEPS_A_FILE:,} steps of a file"
            parts.append(f"{which} stopped after {limit}, {'the first ' * many}{_at(place, path)}")
        if self.not_begun:
            names = [f"`{name}`" for name, _ in self.not_begun[:SHOWN]]
            more = len(self.not_begun) - len(names)
            tail = f" and {more} more" if more else ""
            were = "was" if len(self.not_begun) == 1 else "were"
            spent = "" if self.cuts else f", the {STEPS_A_FILE:,} steps of a file were used up"
            parts.append(f"{', '.join(names)}{tail} {were} not begun{spent}")
        if self.blocks:
            parts.append(f"the code blocks from line {self.blocks[0]:,} on were not begun")
        return parts

    def _rest(self, path: str) -> list[str]:
        parts = [
            f"the program ends {_at(place, path)}: {reason}"
            for place, reason in dict.fromkeys(self.refused)
        ]
        parts += [
            f"{what} was skipped, {_at(place, path)}" for what, place in self.left_out.items()
        ]
        names = sorted(self.not_followed)
        parts += [f"{_name(each)} was not followed: {self.not_followed[each]}" for each in names]
        if self.faults:
            parts.append(
                "a fault of trueloop's own ended a run, please report it with the file "
                f"({self.faults[0]})"
            )
        return parts

    def _reached(self, path: str) -> tuple[int, str]:
        """The line and the function where reading stopped first, or from where it went into the
        file in which it stopped."""
        ends = [place for place, _ in (*self.cuts, *self.refused)]
        stops = (*ends, *self.left_out.values())
        for place in (*stops, *self.cut_within):
            if os.path.abspath(place.path) == path:
                return place.line, place.function
        if self.not_begun:
            return self.not_begun[0][1], self.not_begun[0][0]
        return (self.blocks[0] if self.blocks else 1), ""


def _at(place: Location, path: str) -> str:
    """`in train (line 12)`; of a different file, with its name."""
    of = "" if os.path.abspath(place.path) == path else f" of {_name(place.path)}"
    where = f"line {place.line}{of}"
    return f"in `{place.function}` ({where})" if place.function else f"in {where}"


def _name(path: str) -> str:
    return os.path.basename(path)

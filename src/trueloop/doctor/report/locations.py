"""Locations of findings as text."""

from __future__ import annotations

import os
from typing import NamedTuple
from urllib.parse import quote

from trueloop.doctor.model.findings import Location
from trueloop.doctor.static.checking import CheckResult
from trueloop.doctor.static.inputs.discovery import FileProblem, Unread


class Spot(NamedTuple):
    """A place, in a cell if the file is a notebook."""

    name: str
    """The name of the file."""
    cell: int
    """Number of the cell, from 1; 0 if the file has no cells."""
    line: int
    """In the cell, if there is one."""
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        if self.cell:
            return f"{self.name}: cell {self.cell}, line {self.line}, column {self.column}"
        return f"{self.name}:{self.line}:{self.column}"


def spot_of(outcome: CheckResult, place: Location) -> Spot:
    """The location in a cell if the file is a notebook."""
    cell, line = 0, place.line
    if place.path.endswith(".ipynb"):
        cell, line = outcome.documents[place.path].cell(place.line)
    end_line = line + max(0, place.end_line - place.line)
    end_column = place.end_column if place.end_line else 0
    return Spot(outcome.name(place.path), cell, line, place.column, end_line, end_column)


def problem_line(outcome: CheckResult, problem: FileProblem | Unread) -> str:
    """One line about a file that could not be checked, or not to its end."""
    name = outcome.name(problem.path)
    if not problem.line:
        return f"{name}: {problem.message}"
    cell, line = 0, problem.line
    if problem.path.endswith(".ipynb"):
        cell, line = outcome.documents[problem.path].cell(problem.line)
    where = f"{name}: cell {cell}, line {line}" if cell else f"{name}:{line}"
    return f"{where}: {problem.message}"


def is_below_working_directory(path: str) -> bool:
    relative = os.path.relpath(path)
    return relative != ".." and not relative.startswith(f"..{os.sep}")


def uri(path: str) -> str:
    """A file as code hosts name it: from the working directory, in full if it is outside."""
    if is_below_working_directory(path):
        return quote(os.path.relpath(path).replace(os.sep, "/").encode("utf-8", "surrogateescape"))
    whole = path.replace(os.sep, "/")
    return "file://" + quote(f"/{whole.lstrip('/')}".encode("utf-8", "surrogateescape"))

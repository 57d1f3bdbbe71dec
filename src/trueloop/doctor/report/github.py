"""For GitHub's workflows: annotations that show up in the files of a pull request.

The format is that of "Workflow commands for GitHub Actions", docs.github.com.
"""

from __future__ import annotations

import os

from trueloop.doctor.model.findings import Finding
from trueloop.doctor.report.locations import is_below_working_directory, spot_of
from trueloop.doctor.report.terminal import printable
from trueloop.doctor.static.checking import CheckResult
from trueloop.doctor.static.inputs.discovery import FileProblem, Unread

_LEVELS = {"error": "error", "warning": "warning", "advice": "notice"}


def as_github(outcome: CheckResult) -> str:
    """One line per finding, and one per file that could not be checked, or not to its end; empty if
    there is none."""
    lines = [_annotation(outcome, finding) for finding in outcome.findings]
    lines += [_of_file("error", problem) for problem in outcome.problems]
    lines += [_of_file("notice", unread) for unread in outcome.unread]
    return "\n".join(lines)


def _of_file(level: str, about: FileProblem | Unread) -> str:
    where = {"file": _file(about.path), "title": "trueloop check"}
    if about.line and not about.path.endswith(".ipynb"):
        where["line"] = str(about.line)
    return _command(level, where, about.message)


def _annotation(outcome: CheckResult, finding: Finding) -> str:
    place, spot = finding.place, spot_of(outcome, finding.place)
    where = {"file": _file(place.path), "title": f"{finding.code} {finding.name}"}
    message = finding.message
    if spot.cell:
        # Lines of a cell are not lines of the file.
        message = f"Cell {spot.cell}, line {spot.line}: {message}"
    else:
        where |= {"line": str(place.line), "endLine": str(max(place.line, place.end_line))}
        # Columns are taken only of a single line.
        if place.end_line == place.line:
            where |= {"col": str(place.column), "endColumn": str(place.end_column)}
    for other, label in finding.related:
        message += f"\n{spot_of(outcome, other)}: {label}"
    if finding.fix:
        message += f"\nfix: {finding.fix}"
    return _command(_LEVELS[finding.severity], where, message)


def _file(path: str) -> str:
    name = os.path.relpath(path) if is_below_working_directory(path) else path
    return name.replace(os.sep, "/")


def _command(level: str, where: dict[str, str], message: str) -> str:
    properties = ",".join(
        f"{key}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}"
        for key, value in where.items()
    )
    return f"::{level} {properties}::{_escaped(message)}"


def _escaped(text: str) -> str:
    lines = [printable(line) for line in text.split("\n")]
    return "%0A".join(line.replace("%", "%25") for line in lines)

"""For people: each finding with the lines that it is about, as a good compiler shows them."""

from __future__ import annotations

import itertools
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from trueloop.doctor.findings import Finding, Place
from trueloop.doctor.formats.places import Spot, spot_of
from trueloop.doctor.source.checking import Outcome

WIDTH = 100
"""Columns that messages are wrapped at, and around which longer lines of code are cut."""
PLAIN: Mapping[str, str] = {}
COLOURS: Mapping[str, str] = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "advice": "\x1b[1;36m",
    "place": "\x1b[1m",
    "dim": "\x1b[2m",
    "related": "\x1b[34m",
    "fix": "\x1b[32m",
}


class Mark(NamedTuple):
    """A stretch of one line to point at."""

    spot: Spot
    place: Place
    label: str
    is_main: bool


def as_text(outcome: Outcome, colours: Mapping[str, str] = PLAIN) -> str:
    """All findings and a last line that counts them."""
    paint = _Paint(colours)
    told = [_finding(outcome, finding, paint) for finding in outcome.findings]
    return "\n".join([*told, summary(outcome, paint)])


def summary(outcome: Outcome, paint: _Paint | None = None) -> str:
    """How many findings of each severity there are, and in how many files."""
    paint = paint or _Paint(PLAIN)
    checked = _count(outcome.files, "file") + " checked"
    counts = {
        severity: sum(found.severity == severity for found in outcome.findings)
        for severity in ("error", "warning", "advice")
    }
    parts = [
        paint(severity, str(count) + " advice" if severity == "advice" else _count(count, severity))
        for severity, count in counts.items()
        if count
    ]
    unread = len({problem.path for problem in outcome.problems})
    tail = f"; {unread} could not be checked in full" if unread else ""
    return f"{checked}: {', '.join(parts) if parts else 'nothing found'}{tail}"


class _Paint:
    def __init__(self, colours: Mapping[str, str]) -> None:
        self.colours = colours

    def __call__(self, colour: str, text: str) -> str:
        start = self.colours.get(colour)
        return f"{start}{text}\x1b[0m" if start and text else text


def _finding(outcome: Outcome, finding: Finding, paint: _Paint) -> str:
    spot = spot_of(outcome, finding.place)
    head = (
        f"{paint('place', printable(str(spot)))}  "
        f"{paint(finding.severity, f'{finding.code} {finding.severity}')}  {finding.name}"
    )
    lines = [head, *_wrapped(finding.message)]
    marks = [Mark(spot, finding.place, "", True)]
    marks += [Mark(spot_of(outcome, at), at, label, False) for at, label in finding.related]
    lines += _snippet(outcome, marks, finding, paint)
    if finding.fix:
        lines += [paint("fix", line) for line in _wrapped(f"fix: {finding.fix}")]
    lines.append(paint("dim", f"  trueloop explain {finding.code}"))
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        printable(text),
        WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _snippet(outcome: Outcome, marks: list[Mark], finding: Finding, paint: _Paint) -> Iterator[str]:
    """The lines that the marks are on, in their order, those of other files below their names."""
    width = max(len(str(mark.spot.line)) for mark in marks)
    here = finding.place.path
    marks.sort(key=lambda mark: (mark.place.path != here, mark.place.path, mark.place.line))
    before: Mark | None = None
    by_line = itertools.groupby(marks, key=lambda mark: mark.place[:2])
    for _, same_line in by_line:
        group = sorted(same_line, key=lambda mark: mark.place.column)
        mark = group[0]
        if before is None:
            yield paint("dim", f"  {'':{width}} |")
        elif before.place.path != mark.place.path:
            yield paint("dim", f"  {'':{width}} --> {printable(str(mark.spot))}")
        elif before.spot.cell != mark.spot.cell:
            yield paint("dim", f"  {'':{width}} --> cell {mark.spot.cell}")
        elif mark.place.line > before.place.line + 1:
            yield paint("dim", f"  {'':{width}} ...")
        yield from _marked_line(outcome, group, width, finding, paint)
        before = mark


def _marked_line(
    outcome: Outcome, marks: list[Mark], width: int, finding: Finding, paint: _Paint
) -> Iterator[str]:
    """A line of code with what is to be seen in it underlined."""
    place = marks[0].place
    lines = outcome.documents[place.path].lines
    if not 0 < place.line <= len(lines):
        return  # it was changed, or removed, after it was checked
    code = lines[place.line - 1]
    start, code = _cut(code, place.column - 1)
    gutter = paint("dim", f"  {marks[0].spot.line:>{width}} |")
    yield f"{gutter} {printable(code)}".rstrip()
    for mark in marks:
        first = min(max(0, mark.place.column - 1 - start), len(code))
        is_one_line = mark.place.end_line == mark.place.line
        last = mark.place.end_column - 1 - start if is_one_line else len(code.rstrip())
        last = min(max(last, first + 1), max(len(code), first + 1))
        underline = ("^" if mark.is_main else "-") * max(1, columns(code[first:last]))
        colour = finding.severity if mark.is_main else "related"
        text = paint(colour, " ".join(filter(None, (underline, mark.label))))
        yield f"{paint('dim', f'  {chr(32) * width} |')} {_blank(code[:first])}{text}"


def _cut(code: str, column: int) -> tuple[int, str]:
    """(characters left out, the code around `column`): lines of generated code are long."""
    if len(code) <= 2 * WIDTH:
        return 0, code
    start = max(0, min(column - WIDTH // 4, len(code) - WIDTH))
    return start, code[start : start + WIDTH]


def _blank(text: str) -> str:
    """White space as wide as `text`, tabs as they are."""
    return re.sub(r"[^\t]+", lambda part: " " * columns(part[0]), text)


def columns(text: str) -> int:
    """How many columns of a terminal it takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )


def printable(text: str) -> str:
    """Without what would steer a terminal or cannot be encoded."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each == "\t" else "\N{REPLACEMENT CHARACTER}" for each in text
    )


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")

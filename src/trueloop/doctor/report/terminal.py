"""For people: each finding with the lines that it is about, as a good compiler shows them."""

from __future__ import annotations

import itertools
import os
import re
import textwrap
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple, TextIO

from trueloop.doctor.model.findings import SAME_HERE, Finding, Location
from trueloop.doctor.report.locations import Spot, spot_of
from trueloop.doctor.static.checking import CheckResult

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
    place: Location
    label: str
    is_main: bool


def as_text(outcome: CheckResult, paint: Paint | None = None) -> str:
    """All findings and a last line that counts them."""
    paint = paint or Paint()
    texts = [finding_text(outcome, finding, paint) for finding in outcome.findings]
    return "\n".join([*texts, summary(outcome, paint)])


def summary(outcome: CheckResult, paint: Paint | None = None) -> str:
    """How many findings of each severity there are, and in how many files."""
    paint = paint or Paint()
    checked = counted(outcome.files, "file") + " checked"
    unread = len({problem.path for problem in outcome.problems})
    if not (outcome.files or unread):
        return f"{checked}: no Python file, notebook or Markdown file is there, or all are excluded"
    joint = ";" if outcome.findings else ", but"
    tail = f"{joint} {unread} could not be checked in full" if unread else ""
    tail += f"; {len(outcome.unread)} not read to the end" if outcome.unread else ""
    return f"{checked}: {severities(outcome, paint)}{tail}"


def severities(outcome: CheckResult, paint: Paint) -> str:
    """How many findings of each severity there are."""
    counts = {
        severity: sum(found.severity == severity for found in outcome.findings)
        for severity in ("error", "warning", "advice")
    }
    parts = [
        paint(severity, f"{count} advice" if severity == "advice" else counted(count, severity))
        for severity, count in counts.items()
        if count
    ]
    return ", ".join(parts) if parts else "nothing found"


class Paint:
    """Colours, and the columns that there are: of a terminal, or None."""

    def __init__(self, colours: Mapping[str, str] = PLAIN, terminal: int | None = None) -> None:
        self.colours = colours
        self.width = min(WIDTH, terminal or WIDTH)
        self.terminal = terminal

    def __call__(self, colour: str, text: str) -> str:
        start = self.colours.get(colour)
        return f"{start}{text}\x1b[0m" if start and text else text


def paint_for(stream: TextIO) -> Paint:
    """Colours for a terminal that shows them (see no-color.org), and its width."""
    is_terminal, terminal = stream.isatty(), None
    if is_terminal:
        with suppress(OSError, ValueError):  # of what calls itself a terminal and is none
            terminal = max(40, os.get_terminal_size(stream.fileno()).columns)
    shows = is_terminal and os.environ.get("TERM") != "dumb"
    coloured = not os.environ.get("NO_COLOR") and (shows or os.environ.get("FORCE_COLOR"))
    return Paint(COLOURS if coloured else PLAIN, terminal)


def finding_text(outcome: CheckResult, finding: Finding, paint: Paint) -> str:
    """One finding and its lines of code, followed by an empty line."""
    spot = spot_of(outcome, finding.place)
    head = (
        f"{paint('place', printable(str(spot)))}  "
        f"{paint(finding.severity, f'{finding.code} {finding.severity}')}  {finding.name}"
        f"{_how_often(finding)}"
        f"{f'  ({only_in(finding.seen_in)})' if finding.seen_in else ''}"
    )
    lines = [head, *_wrapped(finding.message, paint)]
    marks = [Mark(spot, finding.place, "", True)]
    marks += [Mark(spot_of(outcome, at), at, label, False) for at, label in finding.related]
    lines += _snippet(outcome, marks, finding, paint)
    if finding.fix:
        lines += [paint("fix", line) for line in _wrapped(f"fix: {finding.fix}", paint)]
    lines.append(paint("dim", f"  trueloop explain {finding.code}"))
    return "\n".join(lines) + "\n"


def _how_often(finding: Finding) -> str:
    """Lines that have the same fault, or how often it was seen as the program ran."""
    if finding.count < 2:
        return ""
    on_lines = any(each.label == SAME_HERE for each in finding.related)
    return f"  (on {finding.count:,} lines)" if on_lines else f"  (seen {finding.count:,} times)"


def only_in(seen_in: str) -> str:
    """`only on rank 1`, `only in SpawnProcess-2`."""
    return f"only {'on' if seen_in.startswith('rank') else 'in'} {seen_in}"


def _wrapped(text: str, paint: Paint) -> list[str]:
    return textwrap.wrap(
        printable(text),
        paint.width,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _snippet(
    outcome: CheckResult, marks: list[Mark], finding: Finding, paint: Paint
) -> Iterator[str]:
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
    outcome: CheckResult, marks: list[Mark], width: int, finding: Finding, paint: Paint
) -> Iterator[str]:
    """A line of code with what is to be seen in it underlined."""
    place = marks[0].place
    lines = outcome.documents[place.path].lines
    if not 0 < place.line <= len(lines):
        return  # it was changed, or removed, after it was checked
    code = lines[place.line - 1]
    room = None if paint.terminal is None else paint.terminal - width - 5
    whole = len(code)
    start, code = _cut(code, place.column - 1, room)
    end = len(code) - (len(code) < whole)
    gutter = paint("dim", f"  {marks[0].spot.line:>{width}} |")
    yield f"{gutter} {printable(code)}".rstrip()
    for mark in marks:
        first = min(max(0, mark.place.column - 1 - start), end)
        is_one_line = mark.place.end_line == mark.place.line
        last = mark.place.end_column - 1 - start if is_one_line else len(code.rstrip())
        last = min(max(last, first + 1), max(len(code), first + 1))
        underline = ("^" if mark.is_main else "-") * max(1, columns(code[first:last]))
        colour = finding.severity if mark.is_main else "related"
        margin, before = paint("dim", f"  {chr(32) * width} |"), _blank(code[:first])
        text = " ".join(filter(None, (underline, mark.label)))
        if mark.label and room is not None and columns(before + text) > room:
            yield f"{margin} {before}{paint(colour, underline)}"
            before, text = " " * min(len(before), max(0, room - columns(mark.label))), mark.label
        yield f"{margin} {before}{paint(colour, text)}"


def _cut(code: str, column: int, room: int | None) -> tuple[int, str]:
    """(characters that are cut, the code around `column`): a terminal's lines have an end, and
    lines of generated code are long."""
    if columns(code) <= (2 * WIDTH if room is None else room):
        return 0, code
    size = WIDTH if room is None else room
    start = max(0, min(column - size // 4, len(code) - size))
    return start, code[start : start + size]


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


def counted(count: int, noun: str) -> str:
    """`1 file`, `1,204 files`."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")

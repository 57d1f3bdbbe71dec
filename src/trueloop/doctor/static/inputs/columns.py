"""Columns in characters: Python's syntax tree counts the bytes of UTF-8."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from trueloop.doctor.model.findings import Finding, Insert, Location, Move, Related, Remedy
from trueloop.doctor.static.inputs.documents import UnreadableError, decode, read_bytes

_BREAK = re.compile(r"\r\n|\r|\n")


def in_characters(
    findings: Iterable[Finding], path: str, text: str, above: int = 0
) -> list[Finding]:
    """The findings with all their places in characters; `text` is that of the file at `path`, or of
    the part of it below so many lines; other files are read again."""
    lines: dict[str, list[bytes]] = {path: _lines(text)}

    def place(at: Location) -> Location:
        if at.path not in lines:
            lines[at.path] = _lines_of_file(at.path)
        known = lines[at.path]
        end_line = at.end_line or at.line
        before = above if at.path == path else 0
        if not known or not before < at.line <= end_line <= before + len(known):
            return at
        return at._replace(
            column=_characters(known[at.line - before - 1], at.column),
            end_column=_characters(known[end_line - before - 1], at.end_column),
        )

    return [
        replace(
            finding,
            place=place(finding.place),
            related=tuple(Related(place(where), label) for where, label in finding.related),
            remedies=tuple(relocated(remedy, place) for remedy in finding.remedies),
        )
        for finding in findings
    ]


def relocated(remedy: Remedy, place: Callable[[Location], Location]) -> Remedy:
    """The same edit at other places."""
    if isinstance(remedy, Insert):
        return remedy._replace(target=place(remedy.target))
    if isinstance(remedy, Move):
        return remedy._replace(what=place(remedy.what), target=place(remedy.target))
    return remedy._replace(what=place(remedy.what))


def _lines(text: str) -> list[bytes]:
    """Its lines as Python counts them; none where bytes are characters."""
    if text.isascii():
        return []
    return [line.encode("utf-8", "surrogatepass") for line in _BREAK.split(text)]


def _lines_of_file(path: str) -> list[bytes]:
    try:
        return _lines(decode(read_bytes(path)))
    except UnreadableError:
        return []  # it has changed since it was read: its columns are of no use in any case


def _characters(line: bytes, column: int) -> int:
    """A column from 1 in bytes as one in characters; 0 stays 0."""
    return len(line[: column - 1].decode("utf-8", "replace")) + 1 if column > 0 else column

"""Two runs of one program alone, and one watched: what the watcher changed."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|inf)")
_TIME = re.compile(
    r"\d+:\d\d(?::\d\d)?(?:\.\d+)?|0x[0-9a-f]+"
    r"|(?:\d+(?:\.\d+)?\s?(?:it/s|s/it|seconds|secs?|ms|s|h|m)(?![A-Za-z]))+"
    r"|\bms/\w+\s+\d+(?:\.\d+)?"
)
"""Times, speeds, and addresses of objects."""
_CLOCK = re.compile(r"\d{10}|\d{8}_\d{6}")
"""Seconds since 1970, or date and time, in the name of a file."""


@dataclass(frozen=True)
class Outcome:
    """One run of a script."""

    status: int
    out: str
    err: str
    files: dict[str, str]
    """What it wrote: path and a hash of the content."""
    seconds: float
    notes: dict[str, Any]
    """What `stand_ins/sitecustomize.py` noted."""


def differences(first: Outcome, second: Outcome, watched: Outcome) -> list[str]:
    """What is different in the watched run and not between the two alone; one text for each."""
    found = []
    if watched.status != first.status:
        found.append(f"exit status {watched.status} for {first.status}: {watched.err[-1500:]}")
    found += different_lines(first.out, second.out, watched.out)
    for name, value in first.notes.items():
        if second.notes.get(name) == value != watched.notes.get(name):
            found.append(f"{name}: {watched.notes.get(name)} for {value}")
    for path in sorted(first.files.keys() | watched.files.keys()):
        before = first.files.get(path)
        if second.files.get(path) == before != watched.files.get(path):
            found.append(f"file {path} is different")
    return found


def varies(first: Outcome, second: Outcome) -> list[str]:
    """What two runs alone do not share, of what `differences` compares."""
    return [
        *(name for name, value in first.notes.items() if second.notes.get(name) != value),
        *(path for path in sorted(first.files) if second.files.get(path) != first.files[path]),
    ]


def different_lines(first: str, second: str, watched: str) -> list[str]:
    """Lines of the watched run that are not those of the first, apart from times and from the
    numbers that differ between the first and the second in some line of the same words."""
    loose: defaultdict[str, set[int]] = defaultdict(set)
    for one, other in zip(_lines(first), _lines(second), strict=False):
        shape, numbers = _parts(one)
        shape_of_other, others = _parts(other)
        if shape == shape_of_other:
            loose[shape] |= {
                k for k, pair in enumerate(zip(numbers, others, strict=True)) if pair[0] != pair[1]
            }
    unsteady = {
        shape for one, other in zip_longest(_lines(first), _lines(second), fillvalue="")
        if (shape := _parts(one)[0]) != _parts(other)[0]
    }  # fmt: skip
    found = []
    for one, other in zip_longest(_lines(first), _lines(watched), fillvalue="<no line>"):
        shape, numbers = _parts(one)
        shape_of_other, others = _parts(other)
        if shape in unsteady:
            continue
        if shape != shape_of_other or any(
            mine != theirs and k not in loose[shape]
            for k, (mine, theirs) in enumerate(zip(numbers, others, strict=True))
        ):
            found.append(f"prints {other!r} for {one!r}")
    return found[:5]


def _lines(text: str) -> list[str]:
    return [_TIME.sub("<time>", line) for line in re.split(r"[\r\n]+", text)]


def _parts(line: str) -> tuple[str, list[str]]:
    """The words of a line, and its numbers."""
    return _NUMBER.sub("<number>", line), _NUMBER.findall(line)


def files_in(folder: Path) -> dict[str, str]:
    """Each file's path, without the times in it, and a hash; of torch's files, of what they contain
    apart from their name. TensorBoard's files are full of times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc" and "tfevents" not in path.name:
            found[_CLOCK.sub("<time>", str(path.relative_to(folder)))] = _digest(path)
    return found


def _digest(path: Path) -> str:
    hashed = hashlib.sha256()
    if not zipfile.is_zipfile(path):
        hashed.update(path.read_bytes())
        return hashed.hexdigest()
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            inner = name.partition("/")[2] or name
            if not inner.endswith("serialization_id"):
                hashed.update(inner.encode() + archive.read(name))
    return hashed.hexdigest()

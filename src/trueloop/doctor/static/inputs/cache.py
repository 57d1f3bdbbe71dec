"""The findings of a file, kept until it, a file it uses, or the checker itself changes.

One small JSON file for each file checked, which is replaced when there is something new. Whatever
cannot be read, or does not fit, counts as absent; where nothing can be written, nothing is kept.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from trueloop import files
from trueloop.doctor.config import project_root
from trueloop.doctor.model.findings import (
    Delete,
    Finding,
    Insert,
    Location,
    Move,
    Related,
    Remedy,
    Replace,
    Severity,
)
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.static.inputs.discovery import FileProblem, Unread
from trueloop.doctor.static.inputs.documents import UnreadableError, digest, read_bytes

FOLDER = ".trueloop_cache"
LARGEST_ENTRY = 50_000_000
"""Bytes; what is larger was not written here."""
_REMEDIES: dict[str, Callable[..., Remedy]] = {
    "Move": Move,
    "Insert": Insert,
    "Replace": Replace,
    "Delete": Delete,
}


@dataclass(frozen=True)
class Examined:
    """The findings of one file."""

    path: str
    content: str = ""
    """Digest of the file's bytes; empty if it could not be read."""
    findings: tuple[Finding, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    followed: tuple[tuple[str, str], ...] = ()
    """Other files that it depends on, each with its digest; an empty one for a file that was looked
    for and was not there."""
    ignores: bool = False
    """It may have comments that suppress findings."""
    unread: Unread | None = None
    """The parts of it that were not read."""
    settled: tuple[tuple[str, str, int], ...] = ()
    """Code, path and line: what was found there in a function without its callers does not hold."""


def digest_of_file(path: str) -> str:
    """The digest of a file's bytes; empty if it cannot be read, or is too large to be."""
    try:
        return digest(read_bytes(path))
    except UnreadableError:
        return ""


def cache_folder() -> Path:
    """Next to the nearest pyproject.toml, or in the user's own folder for caches."""
    root = project_root(os.getcwd())
    if root is not None:
        return Path(root, FOLDER)
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".cache") / "trueloop" / "check"


@functools.cache
def checker_version() -> str:
    """A digest of all that decides what is found: the rules, the machine, and Python's grammar."""
    found = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for path in sorted(Path(__file__).parents[2].rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


class Cache:
    """The results of former runs, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._digests: dict[str, str] = {}

    def get(self, path: str, content: str) -> Examined | None:
        """The findings of the file at `path`, if nothing that it depends on has changed."""
        try:
            entry = json.loads(files.read_bytes(self._place(path), LARGEST_ENTRY))
            if entry["version"] != checker_version() or entry["content"] != content:
                return None
            found = _decoded(path, entry)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        if any(self._digest(other) != known for other, known in found.followed):
            return None
        return found

    def put(self, found: Examined) -> None:
        """Keep it, if it can be kept: without a cache, all is as it was but for the time."""
        if not found.content:
            return
        entry = {
            "version": checker_version(),
            "content": found.content,
            "followed": found.followed,
            "findings": [_encoded(finding) for finding in found.findings],
            "problems": found.problems,
            "ignores": found.ignores,
            "unread": found.unread,
            "settled": found.settled,
        }
        place = self._place(found.path)
        temporary = place.with_suffix(f".{os.getpid()}.tmp")
        with suppress(OSError):
            self._make_folder()
            try:
                temporary.write_text(json.dumps(entry), "utf-8")
                temporary.replace(place)
            finally:
                temporary.unlink(missing_ok=True)

    def _make_folder(self) -> None:
        if self.folder.is_dir():
            return
        self.folder.mkdir(parents=True)
        self.folder.joinpath(".gitignore").write_text("*\n", "utf-8")
        self.folder.joinpath("CACHEDIR.TAG").write_text(
            "Signature: 8a477f597d28d172789f06886806bc55\n"
            "# Made by trueloop check; it can be deleted at any time.\n",
            "utf-8",
        )

    def _place(self, path: str) -> Path:
        return self.folder / f"{digest(os.fsencode(path))}.json"

    def _digest(self, path: str) -> str:
        found = self._digests.get(path)
        if found is None:
            found = self._digests[path] = digest_of_file(path)
        return found


def _encoded(finding: Finding) -> list[Any]:
    return [
        finding.code,
        finding.severity,
        finding.place,
        finding.message,
        finding.fix,
        finding.related,
        [[type(remedy).__name__, *remedy] for remedy in finding.remedies],
        finding.without_callers,
    ]


def _decoded(path: str, entry: dict[str, Any]) -> Examined:
    """Raises `ValueError`, `TypeError` or `KeyError` where the entry is not as it was written."""
    return Examined(
        path,
        entry["content"],
        tuple(_finding(*fields) for fields in entry["findings"]),
        tuple(FileProblem(*_typed(fields, (str, int, str))) for fields in entry["problems"]),
        tuple((other, known) for other, known in entry["followed"]),
        entry["ignores"] is True,
        _unread(entry["unread"]),
        tuple(_typed(fields, (str, str, int)) for fields in entry["settled"]),
    )


def _unread(fields: Any) -> Unread | None:
    return None if fields is None else Unread(*_typed(fields, (str, int, str, str)))


def _finding(
    code: str,
    severity: Severity,
    place: Any,
    message: str,
    fix: str | None,
    related: Iterable[Any],
    remedies: Iterable[Any],
    without_callers: bool,
) -> Finding:
    if severity not in get_args(Severity):
        raise ValueError(severity)
    _typed((message, fix or ""), (str, str))
    return Finding(
        code,
        BY_CODE[code].name,
        severity,
        _place(place),
        message,
        fix,
        tuple(Related(_place(where), str(label)) for where, label in related),
        tuple(_remedy(*fields) for fields in remedies),
        without_callers=without_callers is True,
    )


def _remedy(kind: str, *fields: Any) -> Remedy:
    made = [_place(each) if isinstance(each, list) else each for each in fields]
    return _REMEDIES[kind](*made)


def _place(fields: Any) -> Location:
    return Location(*_typed(fields, (str, int, int, int, int, str)))


def _typed(fields: Any, kinds: tuple[type, ...]) -> tuple[Any, ...]:
    if len(fields) != len(kinds) or not all(map(isinstance, fields, kinds)):
        raise ValueError(fields)
    return tuple(fields)

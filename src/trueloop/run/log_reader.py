"""The log as columns: what has a million lines is read once, and then only what was added."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trueloop.errors import RunError
from trueloop.files import cannot_read, open_regular
from trueloop.run.json_files import unspell

Floats = npt.NDArray[np.float64]
Line = dict[str, Any]
"""One line of metrics.jsonl."""
_KINDS = ("update", "eval", "note")
_CHUNK = 1 << 24
"""Bytes that are parsed at once."""


class UpdateColumns:
    """The lines of updates: one column of float64 for each value that any of them has."""

    def __init__(self, parts: Sequence[tuple[int, dict[str, Floats]]] = ()) -> None:
        self._parts = list(parts)
        """How many lines, and their columns."""

    @classmethod
    def of(cls, lines: Sequence[Line]) -> UpdateColumns:
        """Those of some lines; raises `ValueError` for what is not a number."""
        if not lines:
            return cls()
        names = dict.fromkeys(name for keys in dict.fromkeys(map(tuple, lines)) for name in keys)
        columns = {}
        for name in names:
            if name != "kind":
                values = [line.get(name) for line in lines]
                columns[name] = np.array(
                    [math.nan if v is None else float(v) for v in values], dtype=np.float64
                )
        return cls([(len(lines), columns)])

    def __len__(self) -> int:
        return sum(length for length, _ in self._parts)

    def extend(self, more: UpdateColumns) -> None:
        """Add lines at the end."""
        self._parts += more._parts

    def names(self) -> list[str]:
        """The columns, in order of appearance."""
        return list(dict.fromkeys(name for _, columns in self._parts for name in columns))

    def column(self, name: str) -> Floats:
        """One value of each line; NaN where it is missing."""
        if len(self._parts) > 1:
            self._parts = [(len(self), {each: self._joined(each) for each in self.names()})]
        return self._joined(name)

    def _joined(self, name: str) -> Floats:
        found = [
            columns[name] if name in columns else np.full(length, math.nan)
            for length, columns in self._parts
        ]
        return found[0] if len(found) == 1 else np.concatenate([np.empty(0), *found])

    def chosen(self, mask: npt.NDArray[np.bool_]) -> UpdateColumns:
        """The lines where the mask is true."""
        columns = {name: self.column(name)[mask] for name in self.names()}
        return UpdateColumns([(int(mask.sum()), columns)])

    def last(self) -> dict[str, float]:
        """The values of the last line."""
        if not len(self):
            return {}
        values = {name: float(self.column(name)[-1]) for name in self.names()}
        return {name: value for name, value in values.items() if not math.isnan(value)}


class LogReader:
    """The content of a log: the updates as columns, evaluations and notes as lines.

    `read` takes in what was added since. A log that a resume has cut back is read
    again. A last line that is not whole waits for the next `read`.

    Attributes:
        updates: the lines of updates.
        evals: those of evaluations.
        notes: the notes.
        breaks: for each evaluation and note, in order, after how many updates it is, and the
            seconds of the run at which the training had stopped for it; None of a note.
        eval_after: for each evaluation, after how many lines of updates it is.
        seconds: the time of the last line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._forget()

    @classmethod
    def of(cls, lines: Iterable[Line]) -> LogReader:
        """A reader that has these lines."""
        reader = cls(Path())
        reader._take(list(lines))
        return reader

    def _forget(self) -> None:
        self.updates = UpdateColumns()
        self.evals: list[Line] = []
        self.notes: list[Line] = []
        self.breaks: list[tuple[int, float | None]] = []
        self.eval_after: list[int] = []
        self.seconds = 0.0
        self._offset = self._numbered = 0
        self._file: int | None = None

    def read(self) -> bool:
        """Take in the lines that were added; whether there were any.

        Raises `RunError` for a corrupt line, or a file that cannot be read.
        """
        try:
            with open_regular(self.path, "rb") as file:
                return self._read(file)
        except FileNotFoundError:
            had = bool(self._offset)
            self._forget()
            return had
        except OSError as error:
            raise RunError(cannot_read(self.path, error)) from None

    def _read(self, file: Any) -> bool:
        status = self.path.stat()
        changed = status.st_ino != self._file or status.st_size < self._offset
        if changed:
            self._forget()
        self._file = status.st_ino
        file.seek(self._offset)
        rest, before = b"", self._offset
        while chunk := file.read(_CHUNK):
            whole, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                raw = whole.split(b"\n")
                self._take(self._parsed(raw))
                self._offset += len(whole) + 1
                self._numbered += len(raw)
        return self._offset != before or (changed and bool(before))

    def _parsed(self, raw: list[bytes]) -> list[Line]:
        try:
            lines = json.loads(b"[" + b",".join(raw) + b"]")
            if len(lines) == len(raw) and all(_is_line(line) for line in lines):
                return list(lines)
        except (ValueError, RecursionError):
            pass
        for number, text in enumerate(raw, start=self._numbered + 1):
            if not _is_line(_loaded(text)):
                raise self._corrupt(number)
        return [json.loads(text) for text in raw]

    def _take(self, lines: list[Line]) -> None:
        updates = [line for line in lines if line["kind"] == "update"]
        try:
            columns = UpdateColumns.of(updates)
        except (TypeError, ValueError):
            bad = next(line for line in lines if line["kind"] == "update" and not _is_numbers(line))
            raise self._corrupt(self._numbered + 1 + lines.index(bad)) from None
        count = len(self.updates)
        if len(updates) < len(lines):
            for line in lines:
                if line["kind"] == "update":
                    count += 1
                else:
                    self._take_other(unspell(line), count)
        self.updates.extend(columns)
        if lines:
            self.seconds = float(lines[-1].get("time") or 0.0)

    def _take_other(self, line: Line, count: int) -> None:
        if line["kind"] == "note":
            self.notes.append(line)
            self.breaks.append((count, None))
            return
        self.breaks.append((count, line.get("time", 0.0) - line.get("seconds", 0.0)))
        self.evals.append(line)
        self.eval_after.append(count)

    def _corrupt(self, number: int) -> RunError:
        return RunError(f"{self.path} is corrupt in line {number}: delete that line and try again")

    @property
    def last_update(self) -> int:
        """How many updates had been applied at the last line."""
        found = [line["update"] or 0 for line in (*self.evals, *self.notes)]
        numbers = self.updates.column("update")
        return int(max([*found, numbers.max() if len(numbers) else 0]))


def read_log(path: Path) -> LogReader:
    """The log at `path`, as far as it is written; empty if there is none yet."""
    reader = LogReader(path)
    reader.read()
    return reader


def has_lines(path: Path) -> bool:
    """Whether the log at `path` has a whole line."""
    try:
        with open_regular(path, "rb") as file:
            return b"\n" in file.read(1 << 16)
    except OSError:
        return False


def _loaded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_line(line: Any) -> bool:
    return isinstance(line, dict) and line.get("kind") in _KINDS


def _is_numbers(line: Line) -> bool:
    try:
        return bool(UpdateColumns.of([line]))
    except (TypeError, ValueError):
        return False

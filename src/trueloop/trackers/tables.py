"""Curves as tables: CSV and JSONL files, which any program reads."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from trueloop.atomic import write_atomic
from trueloop.run.json_files import spell
from trueloop.trackers.tracker import Point, Tracker

_FILES = {False: "updates", True: "evaluations"}


class _TableTracker(Tracker):
    """Two files, `updates` and `evaluations`, with a row for each point."""

    suffix: ClassVar[str]

    def _path(self, is_eval: bool) -> Path:
        return self.folder / f"{_FILES[is_eval]}{self.suffix}"

    def _open(self, updates: int) -> None:
        # A file can be cut back, so it has exactly what the resumed run has seen; an evaluation at
        # the last update stays, and is not stored again.
        last = {"update": 0, "evaluation": -1}
        for is_eval, name in ((False, "update"), (True, "evaluation")):
            path = self._path(is_eval)
            rows = [row for row in self._read(path) if int(row["update"]) <= updates]
            if path.exists():
                write_atomic(path, self._text(rows).encode())
            if rows:
                last[name] = int(rows[-1]["update"])
        self._state = last

    def _write(self, points: Sequence[Point]) -> None:
        for is_eval in (False, True):
            rows = [
                {"update": point.update, **point.axes, **point.values}
                for point in points
                if point.is_eval is is_eval
            ]
            if rows:
                self._append(self._path(is_eval), rows)

    def _read(self, path: Path) -> list[dict[str, Any]]:
        """The whole rows of a file; of a last one that was cut short, nothing."""
        raise NotImplementedError

    def _text(self, rows: list[dict[str, Any]]) -> str:
        raise NotImplementedError

    def _append(self, path: Path, rows: list[dict[str, Any]]) -> None:
        raise NotImplementedError


class CSV(_TableTracker):
    """Curves in FOLDER/updates.csv and FOLDER/evaluations.csv, with one row for each point.

    Args:
        folder: a new folder; of a resumed run, the one with its curves.
        every_updates: k stores updates 1, k + 1, 2k + 1, …
        by_line: store the lines of `fit(log_every=…)` in place of updates.

    Raises:
        ConfigError: an argument is not what it should be.
    """

    suffix = ".csv"

    def _read(self, path: Path) -> list[dict[str, Any]]:
        if not path.exists():
            return []
        text = path.read_text(encoding="utf-8")
        return list(csv.DictReader(io.StringIO(text[: text.rfind("\n") + 1])))

    def _text(self, rows: list[dict[str, Any]]) -> str:
        if not rows:
            return ""
        names = dict.fromkeys(name for row in rows for name in row)
        text = io.StringIO()
        table = csv.DictWriter(text, list(names), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        return text.getvalue()

    def _append(self, path: Path, rows: list[dict[str, Any]]) -> None:
        head = ""
        if path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                head = file.readline()
        names = next(csv.reader([head]), [])
        if any(name not in names for row in rows for name in row):
            # A value that earlier rows do not have: a column more.
            write_atomic(path, self._text([*self._read(path), *rows]).encode())
            return
        with path.open("a", encoding="utf-8", newline="") as file:
            csv.DictWriter(file, names, lineterminator="\n").writerows(rows)


class JSONL(_TableTracker):
    """Curves in FOLDER/updates.jsonl and FOLDER/evaluations.jsonl: one JSON object for each point.

    NaN and the infinities are the strings "NaN", "Infinity" and "-Infinity".

    Args:
        folder: a new folder; of a resumed run, the one with its curves.
        every_updates: k stores updates 1, k + 1, 2k + 1, …
        by_line: store the lines of `fit(log_every=…)` in place of updates.

    Raises:
        ConfigError: an argument is not what it should be.
    """

    suffix = ".jsonl"

    def _read(self, path: Path) -> list[dict[str, Any]]:
        if not path.exists():
            return []
        whole = path.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in whole]

    def _text(self, rows: list[dict[str, Any]]) -> str:
        return "".join(
            json.dumps({name: spell(value) for name, value in row.items()}) + "\n" for row in rows
        )

    def _append(self, path: Path, rows: list[dict[str, Any]]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(self._text(rows))

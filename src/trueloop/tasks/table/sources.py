"""The rows of a training: one file, or one beside it for validation or test."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trueloop.errors import DataError, nearest
from trueloop.files import open_regular
from trueloop.tasks.table.table_files import read_frame

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl


_CHUNK = 1 << 20


@dataclass(frozen=True)
class TableFiles:
    """The rows of all files, one after the other."""

    frame: pl.DataFrame
    paths: list[Path]
    """The file of `--data` first."""
    parts: list[str]
    """The use of each file: `data`, `val` or `test`."""
    starts: list[int]
    """The first row of each file."""

    def name(self, row: int) -> str:
        """The usual number of a row, counted from 1 in its own file without the header."""
        k = self._file(row)
        number = f"row {row - self.starts[k] + 1:,}"
        return number if len(self.paths) == 1 else f"{number} of {self.paths[k].name}"

    def rows_of(self, part: str) -> npt.NDArray[np.int64]:
        """The rows of a part's file; none where it has no file."""
        if part not in self.parts:
            return np.empty(0, dtype=np.int64)
        k = self.parts.index(part)
        stop = self.starts[k + 1] if k + 1 < len(self.starts) else self.frame.height
        return np.arange(self.starts[k], stop)

    def digest(self) -> str:
        """Of the files' bytes."""
        digest = hashlib.sha256()
        for path in self.paths:
            own = hashlib.sha256()
            with open_regular(path) as file:
                while chunk := file.read(_CHUNK):
                    own.update(chunk)
            digest.update(own.digest())
        return digest.hexdigest()

    def _file(self, row: int) -> int:
        return bisect_right(self.starts, row) - 1


def read_sources(data: Path, val: Path | None, test: Path | None) -> TableFiles:
    """The tables of `--data`, `--val-data` and `--test-data`, with the columns of the first.

    Raises `DataError`, also for a column that one of the others lacks.
    """
    import polars as pl

    frame = read_frame(data)
    frames, paths, parts = [frame], [data], ["data"]
    for part, path in (("val", val), ("test", test)):
        if path is None:
            continue
        other = read_frame(path)
        absent = [name for name in frame.columns if name not in set(other.columns)]
        if absent:
            raise DataError(
                f"{path} has no column {absent[0]!r}, which {data} has: "
                f"{nearest(absent[0], other.columns)}"
            )
        frames.append(other.select(frame.columns))
        paths.append(path)
        parts.append(part)
    if len(frames) > 1:
        try:
            frame = pl.concat(frames, how="vertical_relaxed")
        except pl.exceptions.PolarsError as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(
                f"the columns of {', '.join(str(path) for path in paths)} differ in their types "
                f"({reason}): save them alike"
            ) from None
    heights = [each.height for each in frames]
    return TableFiles(frame, paths, parts, [sum(heights[:k]) for k in range(len(heights))])

"""Parquet on disk as blocks of rows, of which one is in memory at a time: its row groups."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trueloop.errors import DataError, nearest
from trueloop.files import size
from trueloop.tasks.table.footer import RowGroup, read_footer
from trueloop.tasks.table.table_files import check_names

if TYPE_CHECKING:
    import polars as pl

MOST_ROW_GROUP = 256_000_000
"""Bytes of a row group, before compression, that are read at once."""

AT_ONCE = 4_000_000
"""Bytes of columns, before compression, that polars is asked for at once."""


class LazyColumns(Mapping[str, "pl.Series"]):
    """The columns of a table on disk, each read as a whole when it is asked for."""

    def __init__(self, blocks: RowGroups) -> None:
        self._blocks = blocks

    def __contains__(self, name: object) -> bool:
        return name in self._blocks.schema

    def __getitem__(self, name: str) -> pl.Series:
        import polars as pl

        if name not in self:
            raise KeyError(name)
        numbers = range(len(self._blocks.groups))
        frames = [self._blocks.read(number, [name]) for number in numbers]
        return pl.concat(frames, how="vertical_relaxed").to_series()

    def __iter__(self) -> Iterator[str]:
        return iter(self._blocks.schema)

    def __len__(self) -> int:
        return len(self._blocks.schema)


@dataclass(frozen=True)
class RowGroups:
    """The row groups of one Parquet file, or of all those in a folder, in the order of their names.

    Rows are counted from 0 over all files.
    """

    path: Path
    """As it was named: a file or a folder."""
    paths: list[Path]
    schema: dict[str, pl.DataType]
    """Of the first file; a column that is empty there, of the first that has values."""
    groups: list[RowGroup]
    files: list[int]
    """The file of each row group."""
    starts: list[int]
    """The first row of each row group."""
    digest: str
    """Of the files' names, sizes and footers."""

    @property
    def height(self) -> int:
        """Rows of all files."""
        return self.starts[-1] + self.groups[-1].rows

    @property
    def size(self) -> int:
        """Bytes of all columns, before compression."""
        return sum(group.size for group in self.groups)

    def read(self, number: int, columns: list[str], most: int | None = None) -> pl.DataFrame:
        """The columns of a row group, or of its first rows, at `most` so many. Raises
        `DataError`."""
        import polars as pl

        path, group = self.paths[self.files[number]], self.groups[number]
        if most is not None:
            group = replace(group, rows=min(group.rows, most))
        first = self.starts[number] - self._start_of_file(number)
        # A few columns at a time: polars takes as much again as it reads at once, and keeps it.
        some = max(1, AT_ONCE * len(self.schema) // max(1, self.groups[number].size))
        scan = pl.scan_parquet(path, glob=False, cache=False, parallel="none")
        rows = scan.slice(first, group.rows)
        try:
            parts = [
                rows.select(columns[k : k + some]).collect() for k in range(0, len(columns), some)
            ]
            frame = pl.concat(parts, how="horizontal")
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._broken(path, first, group, reason(error)) from None
        except BaseException as error:  # a panic of polars' own is no Exception
            if type(error).__name__ != "PanicException":
                raise
            raise self._broken(path, first, group, reason(error)) from None
        if frame.height != group.rows:
            why = f"{frame.height:,} rows where its footer names {group.rows:,}"
            raise self._broken(path, first, group, why)
        return frame

    def check_has(self, other: RowGroups) -> None:
        """Raise `DataError` unless there are all columns of `other`, of like types."""
        here = {name: self.schema[name] for name in other.schema if name in self.schema}
        _check_alike(other.paths[0], other.schema, self.paths[0], here)

    def name(self, row: int) -> str:
        """The usual number of a row, counted from 1 in its own file."""
        number = bisect_right(self.starts, row) - 1
        path = self.paths[self.files[number]]
        named = f"row {row - self._start_of_file(number) + 1:,}"
        return named if len(self.paths) == 1 else f"{named} of {path.name}"

    def _start_of_file(self, number: int) -> int:
        return self.starts[self.files.index(self.files[number])]

    def _broken(self, path: Path, first: int, group: RowGroup, why: str) -> DataError:
        return DataError(
            f"{path}: rows {first + 1:,} to {first + group.rows:,} cannot be read ({why}): write "
            "the file again"
        )


def open_blocks(path: Path) -> RowGroups:
    """The row groups of the Parquet file, or of the folder of `.parquet` files, at `path`.

    Raises `DataError` for anything else, and for files that differ in their columns.
    """
    paths = _files(path)
    footers = [read_footer(each) for each in paths]
    schema = _schema(paths)
    groups = [group for footer in footers for group in footer.row_groups]
    if not groups:
        raise DataError(f"{path} has a header but no rows: give a file with data")
    for each, footer in zip(paths, footers, strict=True):
        largest = max((group.size for group in footer.row_groups), default=0)
        if largest > MOST_ROW_GROUP:
            raise DataError(
                f"{each} has a row group of {size(round(largest, -6))}, which would be read at "
                f"once, and {size(MOST_ROW_GROUP)} are the most: write it in smaller ones, python "
                f"-c \"import polars; polars.scan_parquet('{each}').sink_parquet('smaller.parquet',"
                ' row_group_size=100_000)"'
            )
    digest = hashlib.sha256()
    for each, footer in zip(paths, footers, strict=True):
        digest.update(repr((each.name, each.stat().st_size, len(footer.content))).encode())
        digest.update(footer.content)
    ends = [0]
    for group in groups:
        ends.append(ends[-1] + group.rows)
    return RowGroups(
        path=path,
        paths=paths,
        schema=schema,
        groups=groups,
        files=[k for k, footer in enumerate(footers) for _ in footer.row_groups],
        starts=ends[:-1],
        digest=digest.hexdigest(),
    )


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*.parquet") if not each.name.startswith((".", "_")))
    if not found:
        raise DataError(f"{path} has no .parquet file: give a file, or a folder with such files")
    return found


def _schema(paths: list[Path]) -> dict[str, pl.DataType]:
    """The columns that all files have, each with its type. Raises `DataError` where they differ."""
    import polars as pl

    schema: dict[str, pl.DataType] = {}
    for path in paths:
        try:
            found = dict(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(f"{path} is broken Parquet ({reason(error)}): write it again") from None
        if not schema:
            check_names(path, list(found))
            schema = found
            continue
        _check_alike(paths[0], schema, path, found)
        for name, dtype in found.items():
            if schema[name] == pl.Null:
                schema[name] = dtype
    return schema


def _check_alike(
    first: Path, schema: dict[str, pl.DataType], path: Path, found: dict[str, pl.DataType]
) -> None:
    for one, other, there, here in ((first, path, schema, found), (path, first, found, schema)):
        absent = [name for name in there if name not in here]
        if absent:
            raise DataError(
                f"{other} has no column {absent[0]!r}, which {one} has: "
                f"{nearest(absent[0], list(here))}; write all files with the same columns"
            )
    for name, dtype in found.items():
        if not _alike(schema[name], dtype):
            raise DataError(
                f"column {name!r} is {dtype} in {path} and {schema[name]} in {first}: write it "
                "alike in all files"
            )


def _alike(one: pl.DataType, other: pl.DataType) -> bool:
    import polars as pl

    if pl.Null in (one, other) or (one.is_numeric() and other.is_numeric()):
        return True
    texts = (pl.String, pl.Categorical, pl.Enum)
    return one.base_type() == other.base_type() or (
        one.base_type() in texts and other.base_type() in texts
    )


def reason(error: BaseException) -> str:
    """The first line of what polars says."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

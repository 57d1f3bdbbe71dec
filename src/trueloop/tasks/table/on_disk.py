"""A training's tables on disk: their rows part by part, in memory or block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from trueloop import files
from trueloop.errors import DataError
from trueloop.tasks import limits
from trueloop.tasks.table.column_encoding import CellFormat, TableEncoder, read_columns
from trueloop.tasks.table.footer import read_footer
from trueloop.tasks.table.row_groups import RowGroups, open_blocks
from trueloop.tasks.table.row_split import PARTS, Division
from trueloop.tasks.table.stream import Rows, TableStream
from trueloop.tasks.table.table_statistics import TableSource, Target, pieces
from trueloop.tasks.table.targets import NumberTarget, encode_target
from trueloop.tasks.table.used_columns import used_columns

if TYPE_CHECKING:
    import polars as pl

STREAMING = ("auto", "always", "never")
MOST_AS_FRAME = 64_000_000
"""Bytes of a Parquet file, before compression, up to which it is read as one frame."""
MOST_CSV = 2_000_000_000
"""Bytes of a CSV file, which is always read whole."""
MOST_IN_MEMORY = 2_000_000_000
"""Bytes of encoded rows that `auto` keeps in memory, or a quarter of the machine's if that is
less."""
WINDOW = 64_000_000
"""Bytes of encoded rows that are shuffled together when rows are read from disk."""


def is_parquet(path: Path) -> bool:
    """Whether `path` is a folder, or is called Parquet or begins so."""
    if path.is_dir() or path.suffix == ".parquet":
        return True
    try:
        with files.open_regular(path) as file:
            return bool(file.read(4) == b"PAR1")
    except OSError:
        return False  # whoever reads it says why it cannot be


def open_large(
    paths: Sequence[Path], streaming: str = "auto", *, at_once: bool = False
) -> list[RowGroups] | None:
    """The files as blocks, where they are not to be read as whole frames; None otherwise.

    `at_once` says that all rows are needed at once, and so larger frames are read. Raises
    `DataError`, also where rows cannot be read from disk as asked.
    """
    kinds = [is_parquet(path) for path in paths]
    for path, is_columns in zip(paths, kinds, strict=True):
        if not is_columns and path.is_file():
            _check_csv(path, streaming)
    if not any(kinds):
        return None
    most = MOST_IN_MEMORY if at_once else MOST_AS_FRAME
    if streaming != "always" and all(_is_small(path, most) for path in paths):
        return None
    found = [open_blocks(path) if kind else None for path, kind in zip(paths, kinds, strict=True)]
    blocks = [each for each in found if each is not None]
    if len(blocks) < len(paths):
        csv = paths[found.index(None)]
        raise DataError(
            f"{csv} is CSV, and {paths[kinds.index(True)]} is Parquet that is read block by block: "
            f"write it as Parquet too, {conversion(csv)}"
        )
    return blocks


def _is_small(path: Path, most: int) -> bool:
    """Whether `path` is read as one frame: CSV, a Parquet file of `most` bytes, or one that is
    broken, of which whoever reads it says why."""
    if path.is_dir() or not is_parquet(path):
        return not path.is_dir()
    try:
        groups = read_footer(path).row_groups
    except DataError:
        return True
    return sum(group.size for group in groups) <= most


def _check_csv(path: Path, streaming: str) -> None:
    large = path.stat().st_size > MOST_CSV
    if large or streaming == "always":
        why = "is read whole into memory"
        if large:
            why = f"is {files.size(round(path.stat().st_size, -8))}, too much to be {why[3:]}"
        raise DataError(f"{path} {why}: write it as Parquet, {conversion(path)}")


def conversion(path: Path) -> str:
    """A command that writes a CSV file as Parquet."""
    target = path.with_suffix(".parquet").name
    return (
        f"python -c \"import polars; polars.scan_csv('{path}', infer_schema_length=None)"
        f".sink_parquet('{target}', row_group_size=100_000)\""
    )


def sources_of(
    blocks: Sequence[RowGroups], parts: Sequence[str], division: Division
) -> list[TableSource]:
    """The first of `blocks` is divided, and the others are all for their own part.

    Raises `DataError` where their columns differ.
    """
    first = blocks[0]
    for other in blocks[1:]:
        other.check_has(first)
    whole = [Division(all_to=part) for part in parts]
    return [TableSource(each, by) for each, by in zip(blocks, (division, *whole), strict=True)]


@dataclass(frozen=True, kw_only=True)
class RowReader:
    """Rows of some sources as the model takes them; the blocks are counted over all of them."""

    sources: list[TableSource]
    kinds: dict[str, str]
    reading: CellFormat
    encoder: TableEncoder
    target: Target | None
    """None for rows whose target is not asked for."""

    def read(self, block: int, part: str) -> Rows:
        """The rows of a block that are in `part` and have a target. Raises `DataError`."""
        found = [rows for _, rows in self._pieces(block, [part])]
        if len(found) == 1:
            return found[0]
        numbers, categories, targets = zip(*found, strict=True)
        has = self.target is not None
        return torch.cat(numbers), torch.cat(categories), torch.cat(targets) if has else None

    def whole(self, sizes: Mapping[str, Sequence[int]]) -> dict[str, Rows]:
        """All rows of some parts in memory, with room for one block beside; `sizes` are those of
        each block, by part. Each block is read once."""
        made = {part: self._empty(sum(counts)) for part, counts in sizes.items()}
        filled = dict.fromkeys(sizes, 0)
        for block, counts in enumerate(zip(*sizes.values(), strict=True)):
            if not any(counts):
                continue
            for part, rows in self._pieces(block, list(sizes)):
                start = filled[part]
                filled[part] = start + len(rows[0])
                for whole, some in zip(made[part], rows, strict=True):
                    if whole is not None and some is not None:
                        whole[start : filled[part]] = some
        return made

    def _empty(self, count: int) -> Rows:
        """Memory for so many rows."""
        targets = None
        if self.target is not None:
            dtype = torch.float32 if isinstance(self.target, NumberTarget) else torch.int64
            targets = torch.empty(count, dtype=dtype)
        columns = len(self.encoder.categories)
        numbers = torch.empty(count, self.encoder.inputs)
        return numbers, torch.empty(count, columns, dtype=torch.int64), targets

    def _pieces(self, block: int, wanted: Sequence[str]) -> Iterator[tuple[str, Rows]]:
        """The rows of a block that have a target, in order, some at a time: of which part, and
        what they are."""
        source, number = self._place(block)
        needed = [*used_columns(self.encoder, self.kinds), *source.division.columns]
        if self.target is not None:
            needed.append(self.target.name)
        frame = source.blocks.read(number, list(dict.fromkeys(needed)))
        found = pieces(source, number, frame, self.target, self.reading)
        del frame  # or it would still be there while the next block is read
        for piece, parts, values, errors, _ in found:
            for part in wanted:
                yield part, self._encoded(piece, parts == PARTS.index(part), values, errors)

    def _encoded(self, piece: pl.DataFrame, chosen: Any, values: Any, errors: Any) -> Rows:
        import polars as pl

        some = piece if chosen.all() else piece.filter(pl.Series(chosen))
        raw = read_columns(
            some, used_columns(self.encoder, self.kinds), self.reading, errors, self.encoder.whole
        )
        floats, indices = self.encoder.encode(raw)
        targets = None
        if self.target is not None:
            targets = torch.from_numpy(encode_target(self.target, values, chosen.nonzero()[0]))
        return torch.from_numpy(floats), torch.from_numpy(indices), targets

    def _place(self, block: int) -> tuple[TableSource, int]:
        for source in self.sources:
            if block < len(source.blocks.groups):
                return source, block
            block -= len(source.blocks.groups)
        raise AssertionError(block)

    @property
    def row_size(self) -> int:
        """Bytes of an encoded row with its target."""
        target = 0 if self.target is None else 4 if isinstance(self.target, NumberTarget) else 8
        return 4 * self.encoder.inputs + 8 * len(self.encoder.categories) + target

    def stream(
        self, part: str, sizes: list[int], *, shuffle: bool = False, seed: int = 0
    ) -> TableStream:
        """The rows of a part, read when needed; `sizes` are those of each block."""
        return TableStream(
            lambda block: self.read(block, part),
            sizes,
            window=max(1, WINDOW // self.row_size),
            shuffle=shuffle,
            seed=seed,
        )


def is_streamed(row_size: int, rows: int, streaming: str) -> bool:
    """Whether this many rows stay on disk and are read when needed."""
    if streaming != "auto":
        return streaming == "always"
    there = limits.machine_memory()
    most = MOST_IN_MEMORY if there is None else min(MOST_IN_MEMORY, there // 4)
    return rows * row_size > most

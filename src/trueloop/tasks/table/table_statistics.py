"""The statistics of a table on disk, in a few passes over its blocks: all that its parts are made
by.

The same is found as of a table in memory: kinds of columns, classes, medians and quartiles
(exactly, see `quantiles`), values of categories. Memory is one block, and a few histograms for each
column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trueloop.errors import DataError
from trueloop.tasks.table.column_encoding import (
    CellFormat,
    CellKinds,
    RowErrors,
    TableEncoder,
    all_whole,
    kind_of_type,
    read_columns,
)
from trueloop.tasks.table.column_statistics import CategoryStatistics, Moments, NumberStatistics
from trueloop.tasks.table.row_groups import AT_ONCE, RowGroups
from trueloop.tasks.table.row_split import PARTS, Division, Parts
from trueloop.tasks.table.targets import (
    ClassTarget,
    NumberTarget,
    class_texts,
    encode_target,
    is_number,
    target_values,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

PIECE = 32_768
"""Rows that are converted at once."""
_MOST_TARGETS = 2_000
"""Different targets that are kept, while it is open whether they are classes."""
Target = ClassTarget | NumberTarget


@dataclass(kw_only=True)
class TableStatistics:
    """The result of `Surveyor.survey`; plain data by `state`."""

    kind: str
    """Of the task: binary, multiclass or regression."""
    target: Target
    kinds: dict[str, str]
    """`number`, `date` or `category` of each input column."""
    empty: list[str]
    """Columns without a value in any row."""
    encoder: TableEncoder
    rows: dict[str, list[list[int]]]
    """Rows with a target, by part, source and block."""
    gaps: dict[str, int]
    """Missing values of each column."""
    without: int
    """Rows without a target."""
    class_rows: list[int] = field(default_factory=list)
    """Rows of each class."""
    train_class_rows: list[int] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        """Plain data, for `from_state`."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TableStatistics:
        kind = NumberTarget if state["kind"] == "regression" else ClassTarget
        made = {
            "target": kind(**state["target"]),
            "encoder": TableEncoder.from_state(state["encoder"]),
        }
        return cls(**(state | made))

    def count(self, part: str) -> int:
        """Rows of a part."""
        return sum(map(sum, self.rows[part]))


@dataclass(frozen=True)
class TableSource:
    """Blocks, and what their rows are for."""

    blocks: RowGroups
    division: Division

    def name(self, row: int) -> str:
        """The usual number of a row."""
        return self.blocks.name(row)


@dataclass(frozen=True)
class SurveyedRows:
    """Some rows of a block, those that have a target."""

    source: int
    block: int
    frame: pl.DataFrame
    parts: Parts
    """The index in `PARTS` of each row's part."""
    values: Any
    """The target, as `target_values` has it."""
    errors: RowErrors
    dropped: int
    """Rows beside these that have no target."""


@dataclass(kw_only=True)
class Surveyor:
    """Reads the tables of a training as often as it takes to know them."""

    sources: list[TableSource]
    target: str
    task_kind: str
    """auto, classification or regression."""
    log: bool
    reading: CellFormat
    inputs: list[str]
    """Columns that may be inputs."""
    advance: Callable[[int], object]
    """Called with the number of bytes that have been read, in each pass."""

    def survey(self) -> TableStatistics:
        """Raises `DataError` for what cannot be learnt from."""
        kinds, whole, empty = self._kinds()
        target, task_kind = self._target()
        first = _FirstPass(self.sources, target, kinds, whole, self)
        for number, some in enumerate(self._groups(kinds)):
            for piece in self._pieces(target, list(some)):
                if number == 0:
                    first.add_rows(piece)
                first.add(piece, some)
                del piece  # or its block would still be there while the next one is read
            self._finish(first, target, kinds, whole)
        return first.survey(task_kind, empty)

    def _groups(self, kinds: dict[str, str]) -> list[dict[str, str]]:
        """The columns in groups that are read one after the other: the histograms of all at once
        would take more memory than a block."""
        blocks = self.sources[0].blocks
        largest = max(group.size for group in blocks.groups)
        some = max(1, AT_ONCE * len(blocks.schema) // largest)
        names = list(kinds)
        groups = [names[k : k + some] for k in range(0, len(names), some)]
        return [{name: kinds[name] for name in group} for group in groups] or [{}]

    def _kinds(self) -> tuple[dict[str, str], dict[str, bool], list[str]]:
        """The kind of each column; of categories that are floats, whether all are whole; and
        columns that are empty by their type."""
        schema = self.sources[0].blocks.schema
        kinds = {name: kind_of_type(name, schema[name], self.reading) for name in self.inputs}
        texts = {name: CellKinds() for name, kind in kinds.items() if kind is None}
        floats = [n for n, kind in kinds.items() if kind == "category" and schema[n].is_float()]
        whole = dict.fromkeys(floats, True)
        if texts or floats:
            for _, _, frame in self._frames([*texts, *floats]):
                for name, cells in texts.items():
                    cells.add(as_text(frame.get_column(name)), self.reading)
                for name in floats:
                    whole[name] = whole[name] and all_whole(frame.get_column(name))
        found = {name: kind or texts[name].kind() for name, kind in kinds.items()}
        empty = [name for name, kind in found.items() if kind == "empty"]
        return {n: kind for n, kind in found.items() if kind != "empty"}, whole, empty

    def _target(self) -> tuple[Target, str]:
        """The target, and the kind of the task; a regression's scale is still open."""
        import polars as pl

        name = self.target
        dtype = self.sources[0].blocks.schema[name]
        by_type = kind_of_type(name, dtype, self.reading, role="target")
        cells, different, known = CellKinds(), pl.Series(name, [], dtype=dtype), 0
        for _, _, frame in self._frames([name]):
            column = frame.get_column(name)
            known += len(column) - column.null_count()
            if by_type is None:
                cells.add(column, self.reading)
            if len(different) <= _MOST_TARGETS:
                column = column.drop_nulls().unique().cast(dtype)
                different = pl.concat([different, column]).unique(maintain_order=True)
        kind = cells.kind() if by_type is None else by_type
        if kind == "empty" or not len(different):
            raise DataError(
                f"the target {name!r} is empty in every row: choose a different --target"
            )
        errors = RowErrors(strict=True, name=lambda row: f"a row with {different[row]!r}")
        if is_number(different, self.task_kind, self.reading, errors, found=kind):
            return NumberTarget(name, 0.0, 1.0, self.log), "regression"
        texts = class_texts(different, self.reading, kind == "number", errors).drop_nulls()
        target = ClassTarget.of_texts(
            name, texts.unique().to_list(), known, numeric=kind == "number"
        )
        return target, "binary" if len(target.classes) == 2 else "multiclass"

    def _finish(
        self, first: _FirstPass, target: Target, kinds: dict[str, str], whole: dict[str, bool]
    ) -> None:
        """Read the columns again whose quartiles are not known yet."""
        for name in first.open():
            first.numbers[name].quantiles.end_pass()
        while open_ := first.open():
            some = {name: kinds[name] for name in dict.fromkeys(map(first.column_of, open_))}
            for piece in self._pieces(target, list(some)):
                raw = read_columns(piece.frame, some, self.reading, piece.errors, whole)
                for name in open_:
                    first.numbers[name].add_again(raw.numbers[name], piece.parts == 0)
                del piece
            for name in open_:
                first.numbers[name].quantiles.end_pass()

    def _frames(self, columns: list[str]) -> Iterator[tuple[int, int, pl.DataFrame]]:
        """All rows, a block at a time, with the source and the block."""
        for number, source in enumerate(self.sources):
            for block, group in enumerate(source.blocks.groups):
                yield number, block, source.blocks.read(block, columns)
                self.advance(group.size * len(columns) // len(source.blocks.schema))

    def _pieces(self, target: Target, columns: list[str]) -> Iterator[SurveyedRows]:
        division = [column for source in self.sources for column in source.division.columns]
        names = list(dict.fromkeys([target.name, *columns, *division]))
        for number, block, frame in self._frames(names):
            found = pieces(self.sources[number], block, frame, target, self.reading)
            del frame
            yield from (SurveyedRows(number, block, *piece) for piece in found)


class _FirstPass:
    """The sums over all columns as they are read."""

    def __init__(
        self,
        sources: list[TableSource],
        target: Target,
        kinds: dict[str, str],
        whole: dict[str, bool],
        surveyor: Surveyor,
    ) -> None:
        self._target, self._kinds, self._whole = target, kinds, whole
        self._reading, self._schema = surveyor.reading, sources[0].blocks.schema
        self.numbers: dict[str, NumberStatistics] = {}
        self._categories: dict[str, CategoryStatistics] = {}
        self._counts = [
            np.zeros((len(PARTS), len(source.blocks.groups)), dtype=np.int64) for source in sources
        ]
        self._moments, self._without = Moments(), 0
        classes = len(target.classes) if isinstance(target, ClassTarget) else 0
        self._class_rows = np.zeros((2, classes), dtype=np.int64)

    def add_rows(self, piece: SurveyedRows) -> None:
        """Count the rows, and their targets."""
        self._without += piece.dropped
        self._counts[piece.source][:, piece.block] += np.bincount(piece.parts, minlength=len(PARTS))
        self._add_targets(piece.values, piece.parts == 0)

    def add(self, piece: SurveyedRows, kinds: dict[str, str]) -> None:
        """Add up the columns of `kinds`."""
        train = piece.parts == 0
        raw = read_columns(piece.frame, kinds, self._reading, piece.errors, self._whole)
        for name, values in raw.numbers.items():
            if name not in self.numbers:
                self.numbers[name] = NumberStatistics(name, single=self._is_single(name))
            self.numbers[name].add(values, train)
        for name, texts in raw.categories.items():
            self._categories.setdefault(name, CategoryStatistics(name)).add(texts, train)

    def _add_targets(self, values: Any, train: Any) -> None:
        if isinstance(self._target, NumberTarget):
            chosen = values[train]
            self._moments.add(np.log(chosen) if self._target.log else chosen)
            return
        indices = encode_target(self._target, values, np.arange(len(train))).astype(np.int64)
        for k, some in enumerate((indices, indices[train])):
            self._class_rows[k] += np.bincount(some, minlength=len(self._target.classes))

    def open(self) -> list[str]:
        """Numbers whose quartiles need more passes."""
        return [name for name, each in self.numbers.items() if not each.quantiles.is_done]

    def column_of(self, name: str) -> str:
        """The column of the file that a number is from: a date has four."""
        return name if name in self._kinds else name.rpartition(": ")[0]

    def _is_single(self, name: str) -> bool:
        import polars as pl

        dtype = self._schema[self.column_of(name)]
        return dtype in (pl.Float32, pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)

    def survey(self, task_kind: str, empty: list[str]) -> TableStatistics:
        target, moments = self._target, self._moments
        if isinstance(target, NumberTarget) and moments.count:
            target = NumberTarget.of_moments(
                target.name, moments.mean, moments.deviation, log=target.log
            )
        encoder, without_value = self._encoder()
        both: list[NumberStatistics | CategoryStatistics] = [*self.numbers.values()]
        both += self._categories.values()
        return TableStatistics(
            kind=task_kind,
            target=target,
            kinds={n: kind for n, kind in self._kinds.items() if n not in without_value},
            empty=[*empty, *without_value],
            encoder=encoder,
            rows={
                part: [counts[k].tolist() for counts in self._counts]
                for k, part in enumerate(PARTS)
            },
            gaps={each.name: each.gaps for each in both if each.gaps and each.known},
            without=self._without,
            class_rows=self._class_rows[0].tolist(),
            train_class_rows=self._class_rows[1].tolist(),
        )

    def _encoder(self) -> tuple[TableEncoder, list[str]]:
        """The encoder, and the columns that turned out to be empty."""
        encoder, empty = TableEncoder([], [], {}), []
        for name, numbers in self.numbers.items():
            if not numbers.known:
                empty.append(self.column_of(name))
            elif (number := numbers.column()) is not None:
                encoder.numbers.append(number)
            else:
                encoder.dropped[name] = "the same value in every row"
        for name, values in self._categories.items():
            category = values.column() if values.known else None
            if category is None:
                empty.append(name)
            elif isinstance(category, str):
                encoder.dropped[name] = category
            else:
                encoder.categories.append(category)
        return encoder, list(dict.fromkeys(empty))


def pieces(
    source: TableSource, block: int, frame: pl.DataFrame, target: Target | None, reading: CellFormat
) -> Iterator[tuple[pl.DataFrame, Parts, Any, RowErrors, int]]:
    """A block in pieces of `PIECE` rows: those with a target, as `SurveyedRows` has them."""
    import polars as pl

    start = source.blocks.starts[block]
    for offset in range(0, frame.height, PIECE):
        piece = frame.slice(offset, PIECE)
        rows = np.arange(start + offset, start + offset + piece.height)
        parts = source.division.parts(piece, start + offset, reading)
        errors = _strict(source, rows)
        if target is None:
            yield piece, parts, None, errors, 0
            continue
        values, known = target_values(target, piece.get_column(target.name), reading, errors)
        if not known.all():
            piece, parts, rows = piece.filter(pl.Series(known)), parts[known], rows[known]
            values = values[known] if isinstance(values, np.ndarray) else values.filter(known)
            errors = _strict(source, rows)
        yield piece, parts, values, errors, len(known) - len(rows)


def _strict(source: TableSource, rows: npt.NDArray[np.int64]) -> RowErrors:
    """Raises the first mistake in these rows, by its number in the file."""
    return RowErrors(strict=True, name=lambda row: source.name(int(rows[row])))


def as_text(column: pl.Series) -> pl.Series:
    """A column of text that has a different type in one of several files."""
    import polars as pl

    return column if column.dtype == pl.String else column.cast(pl.String)


def bytes_of(sources: Iterable[TableSource]) -> int:
    """Bytes of one pass over all columns."""
    return sum(source.blocks.size for source in sources)

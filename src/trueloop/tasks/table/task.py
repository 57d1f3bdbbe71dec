"""Tables: a CSV or Parquet file, one column of it the target."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from trueloop.errors import ConfigError, DataError, nearest
from trueloop.tasks.base import PredictInput, Splits
from trueloop.tasks.data_findings import DataFinding
from trueloop.tasks.random_split import random_split, stratified_split
from trueloop.tasks.table.base import Inputs, TableBase
from trueloop.tasks.table.checked_options import (
    check_classification,
    check_columns,
    check_folds,
    check_options,
    check_parts,
    check_rows,
    inputs_of,
)
from trueloop.tasks.table.checks import TableChecks
from trueloop.tasks.table.column_encoding import (
    ParsedColumns,
    RowErrors,
    TableEncoder,
    kind_of,
    read_columns,
)
from trueloop.tasks.table.dependent import dependent_rows
from trueloop.tasks.table.description import table_facts
from trueloop.tasks.table.large import labelled_rows, large_splits, unseen_rows
from trueloop.tasks.table.memory import frame_of
from trueloop.tasks.table.on_disk import open_large
from trueloop.tasks.table.ordered_split import SplitOption
from trueloop.tasks.table.sources import TableFiles, read_sources
from trueloop.tasks.table.table_files import read_frame
from trueloop.tasks.table.targets import (
    ClassTarget,
    NumberTarget,
    encode_target,
    is_number,
    target_values,
)
from trueloop.tasks.table.used_columns import used_columns

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

_ALL = ("data", "val", "test")


class Table(TableBase):
    """Classification or regression on the columns of a CSV or Parquet file."""

    def splits(self) -> Splits:
        check_options(self.options)
        options = self.options
        if self.data is None:
            raise ConfigError("the table task needs a file: write --data FILE.csv --target COLUMN")
        check_folds(options, self.fold)
        paths = [self.data, *filter(None, (options.val_data, options.test_data))]
        # A run that began before rows were read block by block goes on as it began.
        blocks = None
        if not self._began_as_frame():
            by_time = SplitOption.parse(options.split).by == "time"
            blocks = open_large(paths, options.streaming, at_once=by_time)
        return self._splits_of_frame(self.data) if blocks is None else large_splits(self, blocks)

    def _began_as_frame(self) -> bool:
        return self.resumed is not None and not self.resumed.get("blocks", False)

    def _splits_of_frame(self, data: Path) -> Splits:
        """All rows read at once."""
        sources = read_sources(data, self.options.val_data, self.options.test_data)
        self.digest, self.in_blocks = sources.digest(), False
        check_columns(self.options, sources.frame.columns, data)
        self.reading = self.settings_of_reading()
        known = self._settle_target(sources)
        frame, rows = sources.frame.filter(known), np.flatnonzero(known)
        errors = RowErrors(strict=True, name=lambda k: sources.name(int(rows[k])))
        empty = self._settle_kinds(frame)
        raw = read_columns(frame, self.kinds, self.reading, errors)
        parts, targets = self._divide(frame, sources, rows, errors)
        self.parts = parts
        self.encoder = TableEncoder.fit(raw, parts["train"])
        self.encoder.dropped |= dict.fromkeys(empty, "empty in every row")
        self.check_encoder()
        inputs = self._encode(raw)
        self.suit(len(parts["train"]))
        self.note_without_target(int((~known).sum()), len(known))
        pieces = {name: ((inputs[0][p], inputs[1][p]), targets[p]) for name, p in parts.items()}
        checked = TableChecks(
            target=self.options.target,
            kinds=self.kinds | dict.fromkeys(empty, "empty"),
            raw=raw,
            encoder=self.encoder,
            parts=parts,
            targets=targets.numpy(),
            classes=self.classes,
            dependent=self._dependent(frame),
        )
        return Splits(
            train=pieces["train"],
            val=pieces["val"],
            test=pieces.get("test"),
            facts=self._facts(raw, parts, targets, int((~known).sum())),
            findings=checked.findings(),
        )

    def read(self, path: Path) -> tuple[Inputs, Tensor]:
        """Rows with their targets, (inputs, targets); rows without a target are dropped, and rows
        that cannot be read too, which `skipped` names; a mistake in Parquet that is read block by
        block raises `DataError`."""
        if (blocks := open_large([path])) is not None:
            labelled: tuple[Inputs, Tensor] = labelled_rows(self, blocks[0])
            return labelled
        errors = RowErrors()
        frame = read_frame(path, errors)
        if self.target.name not in frame.columns:
            raise DataError(
                f"{path} has no column {self.target.name!r}, the target: "
                f"{nearest(self.target.name, frame.columns)}"
            )
        values, known = self._target_values(frame.get_column(self.target.name), errors)
        raw = self._columns(frame, errors)
        if not known.any() and not errors:
            raise DataError(f"{path} has no target in any row: use `trueloop predict` instead")
        without = np.setdiff1d(np.flatnonzero(~known), list(errors))
        self.note_without_target(len(without), len(known))
        known[list(errors)] = False
        if not known.any():
            raise errors.nothing_left(path)
        self.skipped = {errors.name(row): errors[row] for row in sorted(errors)}
        rows = np.flatnonzero(known)
        inputs, targets = self._encode(raw), self._encode_target(values, rows)
        return (inputs[0][rows], inputs[1][rows]), targets

    def unseen(self, path: Path) -> PredictInput:
        """All rows, named by their numbers from 1; the target may be there or not."""
        if (blocks := open_large([path])) is not None:
            return unseen_rows(self, blocks[0])
        errors = RowErrors()
        return self._unseen(read_frame(path, errors), errors, path)

    def unseen_in_memory(self, data: Any) -> PredictInput:
        """The same for a polars or pandas data frame, a dict of columns or a list of dicts."""
        return self._unseen(frame_of(data), RowErrors(), "these rows")

    def _unseen(self, frame: pl.DataFrame, errors: RowErrors, source: Path | str) -> PredictInput:
        raw = self._columns(frame, errors)
        if len(errors) == frame.height:
            raise errors.nothing_left(source)
        rows = np.setdiff1d(np.arange(frame.height), np.fromiter(errors, np.int64, len(errors)))
        numbers, indices = self._encode(raw)
        return PredictInput(
            inputs=(numbers[rows], indices[rows]),
            names={"row": list(range(1, frame.height + 1))},
            errors=dict(errors),
            columns={name: frame.get_column(name) for name in frame.columns},
        )

    def _settle_target(self, sources: TableFiles) -> npt.NDArray[np.bool_]:
        """The kind of the target, and the rows that have one."""
        name = self.options.target
        column = sources.frame.get_column(name)
        if kind_of(column, self.reading, role="target") == "empty":
            raise DataError(
                f"the target {name!r} is empty in every row: choose a different --target"
            )
        errors = RowErrors(strict=True, name=sources.name)
        if is_number(column, self.options.kind, self.reading, errors):
            self.kind = "regression"
            self.classes = None
            # Known only once the rows are divided; until then it says how to read the column.
            self.target = NumberTarget(name, 0.0, 1.0, self.options.log_target)
            _, known = self._target_values(column, errors)
            check_rows(int(known.sum()), self.data)
        else:
            check_classification(self.options)
            check_rows(len(column) - column.null_count(), self.data)
            self.target = ClassTarget.of(column, self.reading, errors)
            self.classes = self.target.classes
            self.kind = "binary" if len(self.classes) == 2 else "multiclass"
            _, known = self._target_values(column, errors)
            check_rows(int(known.sum()), self.data)
        return known

    def _settle_kinds(self, frame: pl.DataFrame) -> list[str]:
        """The kind of each input column; the names of those that have no value in any row."""
        kinds = {
            name: kind_of(frame.get_column(name), self.reading)
            for name in inputs_of(self.options, frame.columns)
        }
        self.kinds = {name: kind for name, kind in kinds.items() if kind != "empty"}
        return [name for name, kind in kinds.items() if kind == "empty"]

    def _target_values(
        self, column: pl.Series, errors: RowErrors
    ) -> tuple[Any, npt.NDArray[np.bool_]]:
        return target_values(self.target, column, self.reading, errors)

    def _encode_target(self, values: Any, rows: npt.NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(encode_target(self.target, values, rows))

    def _divide(
        self,
        frame: pl.DataFrame,
        sources: TableFiles,
        rows: npt.NDArray[np.int64],
        errors: RowErrors,
    ) -> tuple[dict[str, npt.NDArray[np.int64]], Tensor]:
        """The rows of `train`, `val` and maybe `test`, and the target of every row.

        `rows` are those of the sources that `frame` has.
        """
        options = self.options
        column = frame.get_column(options.target)
        values, _ = self._target_values(column, errors)
        targets = self._encode_target(values, np.arange(len(column)))
        own = {name: np.flatnonzero(np.isin(rows, sources.rows_of(name))) for name in _ALL}
        # The test part is taken first: it stays the same when the share of the other changes.
        shares = {
            name: share
            for name, share in (("test", options.test_share), ("val", options.val_share))
            if share and name not in sources.parts
        }
        main, split = own["data"], SplitOption.parse(options.split)
        taken = list(shares.values())
        if split.by != "random":
            ranks = split.ranks(frame.get_column(split.column), self.reading, errors)[main]
            own_ranks = np.unique(ranks, return_inverse=True)[1]
            divided = split.divide(own_ranks, taken, self.seed, self.fold)
        elif self.kind == "regression":
            divided = random_split(len(main), taken, self.seed, self.fold)
        else:
            divided = stratified_split(targets[main].numpy(), taken, self.seed, self.fold)
        parts = dict(zip(("train", *shares), (main[part] for part in divided), strict=True))
        parts |= {name: own[name] for name in sources.parts if name != "data"}
        parts = {name: parts[name] for name in ("train", "val", "test") if name in parts}
        classes = None if self.classes is None else len(torch.unique(targets[parts["train"]]))
        check_parts({name: len(part) for name, part in parts.items()}, classes, options.target)
        if self.kind == "regression":
            self.target = NumberTarget.fit(
                column.name, values[parts["train"]], log=options.log_target
            )
        return parts, targets

    def _dependent(self, frame: pl.DataFrame) -> list[DataFinding]:
        """Findings on rows that should not be divided at random, where they are."""
        if self.options.split != "random" or self.options.val_data is not None:
            return []
        return dependent_rows(frame, self.options.target, self.reading, self.kinds)

    def _columns(self, frame: pl.DataFrame, errors: RowErrors) -> ParsedColumns:
        """The inputs in other data, floats written as in the training."""
        used = used_columns(self.encoder, self.kinds)
        return read_columns(frame, used, self.reading, errors, self.encoder.whole)

    def _encode(self, raw: ParsedColumns) -> Inputs:
        floats, indices = self.encoder.encode(raw)
        return torch.from_numpy(floats), torch.from_numpy(indices)

    def _facts(
        self,
        raw: ParsedColumns,
        parts: dict[str, npt.NDArray[np.int64]],
        targets: Tensor,
        without: int,
    ) -> dict[str, Any]:
        gaps = {name: int(np.isnan(values).sum()) for name, values in raw.numbers.items()}
        gaps |= {name: texts.null_count() for name, texts in raw.categories.items()}
        count = len(self.classes or ())
        return table_facts(
            self.options,
            self.data,
            self.encoder,
            rows={name: len(part) for name, part in parts.items()},
            gaps=gaps,
            without=without,
            classes=self.classes,
            class_rows=torch.bincount(targets, minlength=count).tolist() if count else (),
        )

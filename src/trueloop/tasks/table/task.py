"""Tables: a CSV or Parquet file, one column of it the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from trueloop import losses
from trueloop.errors import ConfigError, DataError, nearest
from trueloop.tasks.base import LossFn, Recipe, Splits, Task, Unseen
from trueloop.tasks.fields import documented
from trueloop.tasks.findings import DataFinding
from trueloop.tasks.limits import MOST_LAYERS, MOST_UNITS, check_range
from trueloop.tasks.splitting import random_split, stratified_split
from trueloop.tasks.table.checks import Checked
from trueloop.tasks.table.columns import (
    Encoder,
    Raw,
    Reading,
    RowErrors,
    kind_of,
    numbers,
    read_columns,
)
from trueloop.tasks.table.dependent import dependent_rows
from trueloop.tasks.table.dividing import Split
from trueloop.tasks.table.memory import frame_of
from trueloop.tasks.table.network import ScaledSquaredError, TableNet
from trueloop.tasks.table.reading import read_frame
from trueloop.tasks.table.sources import Sources, read_sources
from trueloop.tasks.table.targets import ClassTarget, NumberTarget, is_number

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

FEWEST_ROWS = 20
MOST_COLUMNS = 20_000
"""Input columns; 10,000 of numbers are 37 million weights, and minutes for a thousand rows."""
KINDS = ("auto", "classification", "regression")
_PARTS = {"train": "training", "val": "validation", "test": "test"}
_ALL = ("data", "val", "test")
Inputs = tuple[Tensor, Tensor]
"""Numbers, float32 (rows, inputs), and category indices, int64 (rows, columns)."""


class Table(Task):
    """Classification or regression on the columns of a CSV or Parquet file."""

    recipe = Recipe(
        epochs=40,
        batch_size=256,
        optimizer="adamw",
        lr=2e-3,
        weight_decay=0.01,
        schedule="warmup_cosine",
        clip_norm=1.0,
    )

    smaller = "--batch-size, --width or --layers, or leave columns out with --drop"

    @documented
    @dataclass(kw_only=True)
    class Options:
        """Options of the table task."""

        target: str = ""
        """The column to predict."""
        drop: list[str] = field(default_factory=list)
        """Columns to leave out."""
        kind: str = "auto"
        """classification, regression, or auto: classification for text, booleans, whole numbers
        with at most 20 different values, and any column with two."""
        categorical: list[str] = field(default_factory=list)
        """Numeric or date columns to treat as categories, such as codes."""
        missing: list[str] = field(default_factory=lambda: ["NA", "N/A", "null", "None"])
        """Text that stands for a missing number; an empty cell always does."""
        nan: str = "stop"
        """How to treat NaN and infinity in numeric columns: stop (an error), or missing."""
        split: str = "random"
        """How to divide the rows: random (stratified by class), time:COLUMN (the latest rows are
        held out) or group:COLUMN (no group is in two parts, and the column is not an input)."""
        val_share: float = 0.15
        """Share of the rows for validation, which chooses the best epoch."""
        test_share: float = 0.15
        """Share of the rows held out as a test set, scored once at the end; 0 for none."""
        val_data: Path | None = None
        """File with the validation rows, in place of a share of --data."""
        test_data: Path | None = None
        """File with the test rows, in place of a share of --data."""
        log_target: bool = False
        """Train a regression on the logarithm of the target, for targets of many magnitudes."""
        width: int = 256
        """Units of a hidden layer."""
        layers: int = 3
        """Hidden layers."""
        dropout: float | None = None
        """Dropout probability of the hidden units; null chooses by the number of rows."""

    options: Options

    def splits(self) -> Splits:
        sources = self._open()
        self._check_columns(sources.frame)
        self.reading = self._reading()
        known = self._settle_target(sources)
        frame, rows = sources.frame.filter(known), np.flatnonzero(known)
        errors = RowErrors(strict=True, name=lambda k: sources.name(int(rows[k])))
        empty = self._settle_kinds(frame)
        raw = read_columns(frame, self.kinds, self.reading, errors)
        parts, targets = self._divide(frame, sources, rows, errors)
        self.parts = parts
        self.encoder = Encoder.fit(raw, parts["train"])
        self.encoder.dropped |= dict.fromkeys(empty, "empty in every row")
        if not self.encoder.numbers and not self.encoder.categories:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.encoder.dropped.items())
            raise DataError(f"{self.data} has no column to learn from ({reasons}): add columns")
        inputs = self._encode(raw)
        self.recipe, dropout = suited_to(len(parts["train"]))
        self.dropout = dropout if self.options.dropout is None else self.options.dropout
        pieces = {name: ((inputs[0][p], inputs[1][p]), targets[p]) for name, p in parts.items()}
        checked = Checked(
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

    def model(self) -> nn.Module:
        return TableNet(**self.network())

    def network(self) -> dict[str, Any]:
        """The arguments of `TableNet` for these data: plain values, kept in `task.json`."""
        options = self.options
        arguments: dict[str, Any] = {
            "inputs": self.encoder.inputs,
            "sizes": self.encoder.sizes,
            "outputs": len(self.classes) if self.classes and self.kind == "multiclass" else 1,
            "width": options.width,
            "layers": options.layers,
            "dropout": self.dropout,
        }
        if isinstance(self.target, NumberTarget):
            target = self.target
            arguments |= {"mean": target.mean, "deviation": target.deviation, "log": target.log}
        return arguments

    def example_inputs(self, samples: int) -> tuple[Tensor, ...]:
        columns = len(self.encoder.categories)
        return (
            torch.empty(samples, self.encoder.inputs),
            torch.zeros(samples, columns, dtype=torch.int64),
        )

    def loss_fn(self) -> LossFn:
        if isinstance(self.target, NumberTarget):
            return losses.supervised(ScaledSquaredError(self.target.deviation, self.target.log))
        return super().loss_fn()

    def state(self) -> dict[str, Any]:
        return {
            **super().state(),
            "target": self.target.state(),
            "kinds": self.kinds,
            "reading": asdict(self.reading),
            "encoder": self.encoder.state(),
            "dropout": self.dropout,
            "options": asdict(self.options),
            "network": self.network(),
            "digest": self.digest,
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        kind = NumberTarget if self.kind == "regression" else ClassTarget
        self.target: ClassTarget | NumberTarget = kind(**state["target"])
        self.kinds = dict(state["kinds"])
        self.reading = Reading(**state["reading"])
        self.encoder = Encoder.from_state(state["encoder"])
        self.dropout = state["dropout"]
        self.digest = state.get("digest")
        options: dict[str, Any] = dict(state["options"])
        for name in ("val_data", "test_data"):
            options[name] = Path(options[name]) if options.get(name) else None
        self.options = self.Options(**options)

    def read(self, path: Path) -> tuple[Inputs, Tensor]:
        """Rows with their targets, (inputs, targets); rows without a target are left out, and rows
        that cannot be read too, which `skipped` names."""
        errors = RowErrors()
        frame = read_frame(path, errors)
        if self.target.name not in frame.columns:
            raise DataError(
                f"{path} has no column {self.target.name!r}, the target: "
                f"{nearest(self.target.name, frame.columns)}"
            )
        values, known = self._target_values(frame.get_column(self.target.name), errors)
        raw = read_columns(frame, self.kinds, self.reading, errors)
        if not known.any() and not errors:
            raise DataError(f"{path} has no target in any row: use `trueloop predict` instead")
        known[list(errors)] = False
        if not known.any():
            raise errors.nothing_left(path)
        self.skipped = {errors.name(row): errors[row] for row in sorted(errors)}
        rows = np.flatnonzero(known)
        inputs, targets = self._encode(raw), self._encode_target(values, rows)
        return (inputs[0][rows], inputs[1][rows]), targets

    def unseen(self, path: Path) -> Unseen:
        """All rows, named by their numbers from 1; the target may be there or not."""
        errors = RowErrors()
        return self._unseen(read_frame(path, errors), errors, path)

    def unseen_in_memory(self, data: Any) -> Unseen:
        """The same for a polars or pandas data frame, a dict of columns or a list of dicts."""
        return self._unseen(frame_of(data), RowErrors(), "these rows")

    def _unseen(self, frame: pl.DataFrame, errors: RowErrors, source: Path | str) -> Unseen:
        raw = read_columns(frame, self.kinds, self.reading, errors)
        if len(errors) == frame.height:
            raise errors.nothing_left(source)
        rows = np.setdiff1d(np.arange(frame.height), np.fromiter(errors, np.int64, len(errors)))
        numbers, indices = self._encode(raw)
        return Unseen(
            inputs=(numbers[rows], indices[rows]),
            names={"row": list(range(1, frame.height + 1))},
            errors=dict(errors),
        )

    def _open(self) -> Sources:
        self._check_options()
        options = self.options
        if self.data is None:
            raise ConfigError("the table task needs a file: write --data FILE.csv --target COLUMN")
        sources = read_sources(self.data, options.val_data, options.test_data)
        self.digest = sources.digest()
        return sources

    def _check_options(self) -> None:
        options = self.options
        for name, known in (("kind", KINDS), ("nan", ("stop", "missing"))):
            value = getattr(options, name)
            if value not in known:
                raise ConfigError(f"--{name} {value!r} is unknown: {nearest(value, known)}")
        if not 0 < options.val_share < 1 or not 0 <= options.test_share < 1 - options.val_share:
            raise ConfigError(
                f"--val-share {options.val_share:g} and --test-share {options.test_share:g} leave "
                "no rows to train on or to choose the best epoch by: write e.g. --val-share 0.15 "
                "--test-share 0.15"
            )
        if options.dropout is not None and not 0 <= options.dropout < 1:
            raise ConfigError(f"--dropout must be 0 to below 1, not {options.dropout:g}: write 0.1")
        check_range("--width", options.width, 1, MOST_UNITS, example=256)
        check_range("--layers", options.layers, 1, MOST_LAYERS, example=3)
        Split.parse(options.split)

    def _check_columns(self, frame: pl.DataFrame) -> None:
        options, columns, split = self.options, frame.columns, Split.parse(self.options.split)
        if not options.target:
            listed = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
            raise ConfigError(f"which column is to be predicted? write --target NAME, of: {listed}")
        if options.target not in columns:
            raise DataError(
                f"{self.data} has no column {options.target!r} to be the target: "
                f"{nearest(options.target, columns)}"
            )
        if options.target in options.drop:
            raise ConfigError(f"{options.target!r} is the target: take it out of --drop")
        if options.target == split.column:
            raise ConfigError(
                f"{options.target!r} is the target: write --split with a different column"
            )
        there = set(columns)
        listed_columns = {"drop": options.drop, "categorical": options.categorical}
        for option, names in (listed_columns | {"split": [split.column]}).items():
            for name in names:
                if name and name not in there:
                    raise ConfigError(
                        f"--{option}: {self.data} has no column {name!r}: {nearest(name, columns)}"
                    )
        count = len(there - {options.target, *options.drop})
        if count == 0:
            raise ConfigError("--drop leaves no column to predict the target from: drop fewer")
        if count > MOST_COLUMNS:
            raise DataError(
                f"{self.data} has {count:,} input columns, and {MOST_COLUMNS:,} are the most that "
                "this network trains on: leave some out with --drop, or save fewer"
            )

    def _reading(self) -> Reading:
        return Reading(
            missing=[text.lower() for text in self.options.missing],
            nan_is_missing=self.options.nan == "missing",
            categorical=list(self.options.categorical),
        )

    def _settle_target(self, sources: Sources) -> npt.NDArray[np.bool_]:
        """What kind of target it is, and which rows have one."""
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
            self._check_rows(known)
        else:
            self._check_rows(column.is_not_null().to_numpy())
            self.target = ClassTarget.of(column, self.reading, errors)
            self.classes = self.target.classes
            self.kind = "binary" if len(self.classes) == 2 else "multiclass"
            _, known = self._target_values(column, errors)
            self._check_rows(known)
        return known

    def _check_rows(self, known: npt.NDArray[np.bool_]) -> None:
        if known.sum() < FEWEST_ROWS:
            raise DataError(
                f"{self.data} has {known.sum()} rows with a target, too few to learn from and to "
                f"judge by: give {FEWEST_ROWS} or more"
            )

    def _settle_kinds(self, frame: pl.DataFrame) -> list[str]:
        """What each input column is; the names of those that have no value in any row."""
        split = Split.parse(self.options.split)
        out = {self.options.target, *self.options.drop}
        if split.by == "group":
            out.add(split.column)
        kinds = {
            name: kind_of(frame.get_column(name), self.reading)
            for name in frame.columns
            if name not in out
        }
        self.kinds = {name: kind for name, kind in kinds.items() if kind != "empty"}
        return [name for name, kind in kinds.items() if kind == "empty"]

    def _target_values(
        self, column: pl.Series, errors: RowErrors
    ) -> tuple[Any, npt.NDArray[np.bool_]]:
        """The target column as numbers or class names, and which rows have one."""
        if not isinstance(self.target, NumberTarget):
            texts = self.target.texts(column, self.reading, errors)
            return texts, texts.is_not_null().to_numpy()
        values = numbers(column, self.reading, errors)
        wrong = values <= 0 if self.target.log else np.zeros(len(values), dtype=bool)
        errors.add(
            np.flatnonzero(wrong).tolist(),
            lambda k: f"{errors.name(k)} has the target {values[k]:g}, which has no logarithm",
            "leave out --log-target",
        )
        too_large = np.abs(values) > np.finfo(np.float32).max
        errors.add(
            np.flatnonzero(too_large).tolist(),
            lambda k: f"{errors.name(k)} has the target {values[k]:g}, which float32 cannot hold",
            "correct it, or save the target in a larger unit",
        )
        return values, ~(np.isnan(values) | wrong | too_large)

    def _encode_target(self, values: Any, rows: npt.NDArray[np.int64]) -> Tensor:
        """Float32 in the target's own unit, or int64 class indices, (rows,)."""
        if isinstance(self.target, NumberTarget):
            return torch.from_numpy(values[rows].astype(np.float32))
        return torch.from_numpy(self.target.encode(values.gather(rows)))

    def _divide(
        self,
        frame: pl.DataFrame,
        sources: Sources,
        rows: npt.NDArray[np.int64],
        errors: RowErrors,
    ) -> tuple[dict[str, npt.NDArray[np.int64]], Tensor]:
        """The rows of `train`, `val` and maybe `test`, and the target of every row.

        `rows` are those of the sources that `frame` holds.
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
        main, split = own["data"], Split.parse(options.split)
        taken = list(shares.values())
        if split.by != "random":
            ranks = split.ranks(frame.get_column(split.column), self.reading, errors)[main]
            divided = split.divide(np.unique(ranks, return_inverse=True)[1], taken, self.seed)
        elif self.kind == "regression":
            divided = random_split(len(main), taken, self.seed)
        else:
            divided = stratified_split(targets[main].numpy(), taken, self.seed)
        parts = dict(zip(("train", *shares), (main[part] for part in divided), strict=True))
        parts |= {name: own[name] for name in sources.parts if name != "data"}
        parts = {name: parts[name] for name in ("train", "val", "test") if name in parts}
        self._check_parts(parts, targets)
        if self.kind == "regression":
            self.target = NumberTarget.fit(
                column.name, values[parts["train"]], log=options.log_target
            )
        return parts, targets

    def _check_parts(self, parts: dict[str, npt.NDArray[np.int64]], targets: Tensor) -> None:
        """Raise `DataError` for a part without a row, or training rows of one class alone."""
        for name, part in parts.items():
            if len(part) == 0:
                raise DataError(
                    f"no row with a target is left for {_PARTS[name]}: give more rows, or a larger "
                    "share"
                )
        if self.classes is not None and len(torch.unique(targets[parts["train"]])) < 2:
            raise DataError(
                f"the training rows have one class of the target {self.options.target!r} only: "
                "choose a different --split, or give more rows"
            )

    def _dependent(self, frame: pl.DataFrame) -> list[DataFinding]:
        """Findings on rows that should not be divided at random, where they are."""
        if self.options.split != "random" or self.options.val_data is not None:
            return []
        return dependent_rows(frame, self.options.target, self.reading, self.kinds)

    def _encode(self, raw: Raw) -> Inputs:
        floats, indices = self.encoder.encode(raw)
        return torch.from_numpy(floats), torch.from_numpy(indices)

    def _facts(
        self,
        raw: Raw,
        parts: dict[str, npt.NDArray[np.int64]],
        targets: Tensor,
        without: int,
    ) -> dict[str, Any]:
        options = self.options
        facts: dict[str, Any] = {
            "file": str(self.data),
            "target": options.target,
            "rows": {name: len(part) for name, part in parts.items()},
            "split": options.split,
            "number columns": [column.name for column in self.encoder.numbers],
            "category columns": {c.name: len(c.values) for c in self.encoder.categories},
        }
        for name, path in (("val", options.val_data), ("test", options.test_data)):
            if path is not None:
                facts[f"{_PARTS[name]} file"] = str(path)
        if options.drop:
            facts["left out as asked"] = list(options.drop)
        if self.encoder.dropped:
            facts["left out"] = self.encoder.dropped
        if without:
            facts["rows without a target, left out"] = without
        gaps = {name: int(np.isnan(values).sum()) for name, values in raw.numbers.items()}
        gaps |= {name: texts.null_count() for name, texts in raw.categories.items()}
        if any(gaps.values()):
            facts["missing values"] = {name: count for name, count in gaps.items() if count}
        if self.classes is not None:
            counts = torch.bincount(targets, minlength=len(self.classes)).tolist()
            facts["rows of each class"] = dict(zip(self.classes, counts, strict=True))
        return facts


def suited_to(rows: int) -> tuple[Recipe, float]:
    """Recipe and dropout for so many training rows: the fewer rows, the more regularisation.

    Chosen on few data sets (titanic, diamonds): a good start, not an optimum.
    """
    base = Table.recipe
    if rows < 2_000:
        size = min(32, rows)
        return replace(base, batch_size=size, lr=1e-3, weight_decay=0.3, epochs=30), 0.4
    if rows < 20_000:
        return replace(base, batch_size=128, weight_decay=0.1), 0.2
    return replace(base, epochs=30 if rows < 200_000 else 12), 0.0

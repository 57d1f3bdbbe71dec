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
from trueloop.tasks.splitting import random_split, stratified_split
from trueloop.tasks.table.checks import Checked
from trueloop.tasks.table.columns import Encoder, Raw, Reading, kind_of, numbers, read_columns
from trueloop.tasks.table.network import ScaledSquaredError, TableNet
from trueloop.tasks.table.reading import read_frame
from trueloop.tasks.table.targets import ClassTarget, NumberTarget, is_number

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

FEWEST_ROWS = 20
KINDS = ("auto", "classification", "regression")
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
        """Columns of numbers or dates that are names in truth, such as codes."""
        missing: list[str] = field(default_factory=lambda: ["NA", "N/A", "null", "None"])
        """Text that stands for a missing number; an empty cell always does."""
        nan: str = "stop"
        """What NaN and infinity among the numbers are: stop (an error) or missing."""
        val_share: float = 0.15
        """Share of the rows that choose the best epoch."""
        test_share: float = 0.15
        """Share of the rows that are held out from every choice; 0 for none."""
        log_target: bool = False
        """Train a regression on the target's logarithm, for targets of many magnitudes."""
        width: int = 256
        """Units of a hidden layer."""
        layers: int = 3
        """Hidden layers."""
        dropout: float | None = None
        """Share of the hidden units left out at random in training; null chooses by the rows."""

    options: Options

    def splits(self) -> Splits:
        frame = self._open()
        self._check_columns(frame)
        self.reading = self._reading()
        frame, without = self._rows_with_target(frame)
        self.kinds = {
            name: kind_of(frame.get_column(name), self.reading)
            for name in frame.columns
            if name != self.options.target and name not in self.options.drop
        }
        raw = read_columns(frame, self.kinds, self.reading)
        parts, targets = self._divide(frame.get_column(self.options.target))
        self.encoder = Encoder.fit(raw, parts[0])
        if not self.encoder.numbers and not self.encoder.categories:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.encoder.dropped.items())
            raise DataError(f"{self.data} has no column to learn from ({reasons}): add columns")
        inputs = self._encode(raw)
        self.recipe, dropout = suited_to(len(parts[0]))
        self.dropout = dropout if self.options.dropout is None else self.options.dropout
        pieces = [((inputs[0][p], inputs[1][p]), targets[p]) for p in parts]
        checked = Checked(
            target=self.options.target,
            kinds=self.kinds,
            raw=raw,
            encoder=self.encoder,
            parts=dict(zip(("train", "val", "test"), parts, strict=False)),
            targets=targets.numpy(),
            classes=self.classes,
        )
        return Splits(
            train=pieces[0],
            val=pieces[1],
            test=pieces[2] if len(pieces) > 2 else None,
            facts=self._facts(raw, parts, targets, without),
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
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        kind = NumberTarget if self.kind == "regression" else ClassTarget
        self.target: ClassTarget | NumberTarget = kind(**state["target"])
        self.kinds = dict(state["kinds"])
        self.reading = Reading(**state["reading"])
        self.encoder = Encoder.from_state(state["encoder"])
        self.dropout = state["dropout"]
        self.options = self.Options(**state["options"])

    def read(self, path: Path) -> tuple[Inputs, Tensor]:
        """Rows with their targets, (inputs, targets); rows without a target are left out."""
        frame = read_frame(path)
        if self.target.name not in frame.columns:
            raise DataError(
                f"{path} has no column {self.target.name!r}, the target: "
                f"{nearest(self.target.name, frame.columns)}"
            )
        column = frame.get_column(self.target.name)
        values, known = self._target_values(column)
        if not known.any():
            raise DataError(f"{path} has no target in any row: use `trueloop predict` instead")
        rows = np.flatnonzero(known)
        inputs = self._encode(read_columns(frame, self.kinds, self.reading))
        targets = self._encode_target(values, rows)
        return (inputs[0][rows], inputs[1][rows]), targets

    def unseen(self, path: Path) -> Unseen:
        """All rows, named by their numbers from 1; the target may be there or not."""
        frame = read_frame(path)
        inputs = self._encode(read_columns(frame, self.kinds, self.reading))
        return Unseen(inputs=inputs, names={"row": list(range(1, frame.height + 1))})

    def _open(self) -> pl.DataFrame:
        self._check_options()
        if self.data is None:
            raise ConfigError("the table task needs a file: write --data FILE.csv --target COLUMN")
        return read_frame(self.data)

    def _check_options(self) -> None:
        options = self.options
        for name, known in (("kind", KINDS), ("nan", ("stop", "missing"))):
            value = getattr(options, name)
            if value not in known:
                raise ConfigError(f"--{name} {value!r} is unknown: {nearest(value, known)}")
        if not 0 < options.val_share < 1 or not 0 <= options.test_share < 1 - options.val_share:
            raise ConfigError(
                f"--val-share {options.val_share:g} and --test-share {options.test_share:g} leave "
                "nothing to train on or to choose by: write e.g. --val-share 0.15 --test-share 0.15"
            )
        if options.dropout is not None and not 0 <= options.dropout < 1:
            raise ConfigError(f"--dropout must be 0 to below 1, not {options.dropout:g}: write 0.1")
        for name in ("width", "layers"):
            if getattr(options, name) < 1:
                raise ConfigError(f"--{name} must be 1 or more, not {getattr(options, name)}")

    def _check_columns(self, frame: pl.DataFrame) -> None:
        options, columns = self.options, frame.columns
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
        for option in ("drop", "categorical"):
            for name in getattr(options, option):
                if name not in columns:
                    raise ConfigError(
                        f"--{option}: {self.data} has no column {name!r}: {nearest(name, columns)}"
                    )
        if len(set(columns) - {options.target, *options.drop}) == 0:
            raise ConfigError("--drop leaves no column to predict the target from: drop fewer")

    def _reading(self) -> Reading:
        return Reading(
            missing=[text.lower() for text in self.options.missing],
            nan_is_missing=self.options.nan == "missing",
            categorical=list(self.options.categorical),
        )

    def _rows_with_target(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
        """The rows that have a target, and how many have not. Settles what kind of target it is."""
        name = self.options.target
        column = frame.get_column(name)
        if column.null_count() == len(column):
            raise DataError(f"the target {name!r} is empty in every row: choose another --target")
        if is_number(column, self.options.kind, self.reading):
            self.kind = "regression"
            self.classes = None
            # Known only once the rows are divided; until then it says how to read the column.
            self.target = NumberTarget(name, 0.0, 1.0, self.options.log_target)
        else:
            self.target = ClassTarget.of(column, self.reading)
            self.classes = self.target.classes
            self.kind = "binary" if len(self.classes) == 2 else "multiclass"
        _, known = self._target_values(column)
        if known.sum() < FEWEST_ROWS:
            raise DataError(
                f"{self.data} has {known.sum()} rows with a target, too few to learn from and to "
                f"judge by: give {FEWEST_ROWS} or more"
            )
        return frame.filter(known), int((~known).sum())

    def _target_values(self, column: pl.Series) -> tuple[Any, npt.NDArray[np.bool_]]:
        """The target column as numbers or class names, and which rows have one."""
        if isinstance(self.target, NumberTarget):
            values = numbers(column, self.reading)
            if self.target.log and np.nanmin(values) <= 0:
                raise DataError(
                    f"row {np.nanargmin(values) + 1} has the target {np.nanmin(values):g}, which "
                    "has no logarithm: leave out --log-target"
                )
            too_large = np.abs(values) > np.finfo(np.float32).max
            if too_large.any():
                row = int(np.argmax(too_large))
                raise DataError(
                    f"row {row + 1} has the target {values[row]:g}, which float32 cannot hold: "
                    "correct it, or save the target in a larger unit"
                )
            return values, ~np.isnan(values)
        texts = self.target.texts(column, self.reading)
        return texts, texts.is_not_null().to_numpy()

    def _encode_target(self, values: Any, rows: npt.NDArray[np.int64]) -> Tensor:
        """Float32 in the target's own unit, or int64 class indices, (rows,)."""
        if isinstance(self.target, NumberTarget):
            return torch.from_numpy(values[rows].astype(np.float32))
        return torch.from_numpy(self.target.encode(values.gather(rows)))

    def _divide(self, column: pl.Series) -> tuple[list[npt.NDArray[np.int64]], Tensor]:
        """The rows of each part, and the target of every row."""
        options = self.options
        values, _ = self._target_values(column)
        targets = self._encode_target(values, np.arange(len(column)))
        # The test part is taken first: it stays the same when the others' shares change.
        shares = [share for share in (options.test_share, options.val_share) if share]
        if self.kind == "regression":
            train, *held_out = random_split(len(column), shares, self.seed)
            self.target = NumberTarget.fit(column.name, values[train], log=options.log_target)
        else:
            train, *held_out = stratified_split(targets.numpy(), shares, self.seed)
        return [train, *reversed(held_out)], targets

    def _encode(self, raw: Raw) -> Inputs:
        floats, indices = self.encoder.encode(raw)
        return torch.from_numpy(floats), torch.from_numpy(indices)

    def _facts(
        self, raw: Raw, parts: list[npt.NDArray[np.int64]], targets: Tensor, without: int
    ) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "file": str(self.data),
            "target": self.options.target,
            "rows": {n: len(p) for n, p in zip(("train", "val", "test"), parts, strict=False)},
            "number columns": [column.name for column in self.encoder.numbers],
            "category columns": {c.name: len(c.values) for c in self.encoder.categories},
        }
        if self.options.drop:
            facts["left out as asked"] = list(self.options.drop)
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

    Chosen on few data sets (titanic, diamonds): a good start, no optimum.
    """
    base = Table.recipe
    if rows < 2_000:
        size = min(32, rows)
        return replace(base, batch_size=size, lr=1e-3, weight_decay=0.3, epochs=30), 0.4
    if rows < 20_000:
        return replace(base, batch_size=128, weight_decay=0.1), 0.2
    return replace(base, epochs=30 if rows < 200_000 else 12), 0.0

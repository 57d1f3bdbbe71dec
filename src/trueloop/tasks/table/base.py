"""The table task's columns, however the rows are read, and the network for them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import losses, metrics
from trueloop.errors import DataError
from trueloop.metrics._quantiles import middle
from trueloop.tasks.base import LossFn, Task
from trueloop.tasks.recipe import Recipe
from trueloop.tasks.standalone import table_rows
from trueloop.tasks.table import network
from trueloop.tasks.table.column_encoding import CellFormat, TableEncoder
from trueloop.tasks.table.intervals import ScaledQuantileLoss, column_names
from trueloop.tasks.table.network import ScaledSquaredError, TableNet
from trueloop.tasks.table.options import TableOptions
from trueloop.tasks.table.targets import ClassTarget, NumberTarget
from trueloop.tasks.table.used_columns import used_columns

Inputs = tuple[Tensor, Tensor]
"""Numbers, float32 (rows, inputs), and category indices, int64 (rows, columns)."""


class TableBase(Task):
    """A fitted table: its target, the kinds of its columns and their encoder."""

    recipe = Recipe(
        epochs=40,
        batch_size=256,
        optimizer="adamw",
        lr=2e-3,
        weight_decay=0.01,
        schedule="warmup_cosine",
        clip_norm=1.0,
    )

    random_weights = True
    smaller = "--batch-size, --width or --layers, or leave columns out with --drop"

    Options = TableOptions  # type: ignore[assignment]  # as other tasks nest theirs
    options: TableOptions
    in_blocks = False
    """Whether the rows were read block by block, and divided so."""

    def check_encoder(self) -> None:
        """Raise `DataError` where no column is left."""
        if not self.encoder.numbers and not self.encoder.categories:
            reasons = "; ".join(f"{name}: {why}" for name, why in self.encoder.dropped.items())
            raise DataError(f"{self.data} has no column to learn from ({reasons}): add columns")

    def note_without_target(self, without: int, rows: int) -> None:
        """Note how many of so many rows are skipped."""
        if without:
            self.notes = [
                f"{without:,} of {rows:,} rows have no value in the target column "
                f"{self.target.name!r}: they are skipped"
            ]

    def suit(self, rows: int) -> None:
        """Take the recipe and dropout for so many training rows."""
        self.recipe, dropout = suited_to(rows)
        self.dropout = dropout if self.options.dropout is None else self.options.dropout

    def model(self) -> nn.Module:
        return TableNet(**self.network())

    def network(self) -> dict[str, Any]:
        """The arguments of `TableNet` for these data: plain values, kept in `task.json`."""
        options = self.options
        several = self.classes if self.kind == "multiclass" else options.quantiles
        arguments: dict[str, Any] = {
            "inputs": self.encoder.inputs,
            "sizes": self.encoder.sizes,
            "outputs": len(several) if several else 1,
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

    def standalone(self) -> dict[str, Path]:
        return {"network.py": Path(network.__file__), "predict.py": Path(table_rows.__file__)}

    def loss_fn(self) -> LossFn:
        if isinstance(self.target, NumberTarget):
            scale, log = self.target.deviation, self.target.log
            if quantiles := self.options.quantiles:
                return losses.supervised(ScaledQuantileLoss(quantiles, scale, log))
            return losses.supervised(ScaledSquaredError(scale, log))
        return super().loss_fn()

    def metrics(self) -> Any:
        if quantiles := self.options.quantiles:
            return metrics.for_task("quantile", quantiles=quantiles)
        return super().metrics()

    def point_outputs(self, outputs: Tensor) -> Tensor:
        quantiles = self.options.quantiles
        return outputs[:, middle(quantiles)] if quantiles else super().point_outputs(outputs)

    def interval(self, outputs: Tensor) -> tuple[Tensor, Tensor, float] | None:
        if not (quantiles := self.options.quantiles):
            return None
        return outputs[:, 0], outputs[:, -1], quantiles[-1] - quantiles[0]

    def predictions(self, outputs: Tensor) -> dict[str, Any]:
        """With quantiles, a column of each beside `prediction`, the one nearest to the median."""
        found = super().predictions(self.point_outputs(outputs))
        columns = outputs.float().unbind(1) if self.quantile_names() else ()
        named = zip(self.quantile_names(), columns, strict=True)
        return found | {name: column.numpy(force=True) for name, column in named}

    def quantile_names(self) -> dict[str, float]:
        """The quantiles by the names of their columns in the prediction file."""
        quantiles = self.options.quantiles
        return dict(zip(column_names(self.target.name, quantiles), quantiles, strict=True))

    def state(self) -> dict[str, Any]:
        return {
            **super().state(),
            "target": self.target.state(),
            "kinds": used_columns(self.encoder, self.kinds),
            "reading": asdict(self.reading),
            "encoder": self.encoder.state(),
            "dropout": self.dropout,
            "options": asdict(self.options),
            "network": self.network(),
            "quantiles": self.quantile_names(),
            "digest": self.digest,
            "blocks": self.in_blocks,
        }

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        kind = NumberTarget if self.kind == "regression" else ClassTarget
        self.target: ClassTarget | NumberTarget = kind(**state["target"])
        self.kinds = dict(state["kinds"])
        self.reading = CellFormat(**state["reading"])
        self.encoder = TableEncoder.from_state(state["encoder"])
        self.dropout = state["dropout"]
        self.digest = state.get("digest")
        self.in_blocks = bool(state.get("blocks", False))
        options: dict[str, Any] = dict(state["options"])
        for name in ("val_data", "test_data"):
            options[name] = Path(options[name]) if options.get(name) else None
        self.options = self.Options(**options)

    def settings_of_reading(self) -> CellFormat:
        """How cells are to be read, by the options."""
        return CellFormat(
            missing=[text.lower() for text in self.options.missing],
            nan_is_missing=self.options.nan == "missing",
            categorical=list(self.options.categorical),
        )


def suited_to(rows: int) -> tuple[Recipe, float]:
    """Recipe and dropout for so many training rows: the fewer rows, the more regularisation.

    Chosen on few data sets (titanic, diamonds): a good start, not an optimum.
    """
    base = TableBase.recipe
    if rows < 2_000:
        size = min(32, rows)
        return replace(base, batch_size=size, lr=1e-3, weight_decay=0.3, epochs=30), 0.4
    if rows < 20_000:
        return replace(base, batch_size=128, weight_decay=0.1), 0.2
    return replace(base, epochs=30 if rows < 200_000 else 12), 0.0

"""The options of the table task compared with each other and with the columns of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trueloop import _options
from trueloop.errors import ConfigError, DataError, nearest
from trueloop.folds import FoldNumber
from trueloop.tasks.limits import MOST_LAYERS, MOST_UNITS, check_range
from trueloop.tasks.table.command_words import option_value
from trueloop.tasks.table.on_disk import STREAMING
from trueloop.tasks.table.ordered_split import SplitOption

if TYPE_CHECKING:
    from trueloop.tasks.table.options import TableOptions

FEWEST_ROWS = 20
MOST_COLUMNS = 20_000
"""Input columns; 10,000 of numbers are 37 million weights, and minutes for a thousand rows."""
KINDS = ("auto", "classification", "regression")
PART_NAMES = {"train": "training", "val": "validation", "test": "test"}


def check_options(options: TableOptions) -> None:
    """Raise `ConfigError` for values that cannot work, whatever the data."""
    known_values = {"kind": KINDS, "nan": ("stop", "missing"), "streaming": STREAMING}
    for name, known in known_values.items():
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
    SplitOption.parse(options.split)
    if options.quantiles and not _options.are_quantiles(options.quantiles, least=2):
        raise ConfigError(
            f"--quantiles {','.join(map(str, options.quantiles)):.100} must be two or more numbers "
            "between 0 and 1 that ascend: write e.g. --quantiles 0.05,0.5,0.95"
        )


def check_folds(options: TableOptions, fold: FoldNumber | None) -> None:
    """Raise `ConfigError` for options that cannot go with `fold`."""
    if fold is None:
        return
    if options.val_data is not None:
        raise ConfigError(
            "--folds chooses the validation rows among those of --data: leave out --val-data"
        )
    if options.split.startswith("time:"):
        raise ConfigError(
            f"--split {options.split} validates on the latest rows, and --folds on all in turn: "
            "write --repeats 5 instead, or --split group:COLUMN"
        )


def check_columns(options: TableOptions, columns: Sequence[str], data: Path | None) -> None:
    """Raise `ConfigError` or `DataError` where the options name columns that `data` lacks, or leave
    none to learn from."""
    split = SplitOption.parse(options.split)
    if not options.target:
        listed = ", ".join(columns[:20]) + (", …" if len(columns) > 20 else "")
        raise ConfigError(f"which column is to be predicted? write --target NAME, of: {listed}")
    if options.target not in columns:
        raise DataError(
            f"{data} has no column {options.target!r} to be the target: "
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
                raise _no_column(option, name, columns, data)
    count = len(there - {options.target, *options.drop})
    if count == 0:
        raise ConfigError("--drop leaves no column to predict the target from: drop fewer")
    if count > MOST_COLUMNS:
        raise DataError(
            f"{data} has {count:,} input columns, and {MOST_COLUMNS:,} are the most that this "
            "network accepts: drop some with --drop"
        )


def _no_column(option: str, name: str, columns: Sequence[str], data: Path | None) -> ConfigError:
    remedy = nearest(name, columns)
    for column in columns:
        if "," in column and option != "split" and name in map(str.strip, column.split(",")):
            value = option_value([column])
            remedy = f"a name with a comma needs quotation marks: write --{option} {value}"
    return ConfigError(f"--{option}: {data} has no column {name!r}: {remedy}")


def inputs_of(options: TableOptions, columns: Sequence[str]) -> list[str]:
    """The columns that may be inputs."""
    split = SplitOption.parse(options.split)
    out = {options.target, *options.drop} | ({split.column} if split.by == "group" else set())
    return [name for name in columns if name not in out]


def check_classification(options: TableOptions) -> None:
    """Raise `ConfigError` for the logarithm or the quantiles of a target of classes."""
    asked = {"--log-target": options.log_target, "--quantiles": options.quantiles}
    for name, given in asked.items():
        if given:
            raise ConfigError(
                f"{name} is for a regression, and {options.target!r} is a column of classes: "
                f"leave out {name}, or write --kind regression"
            )


def check_rows(count: int, data: Path | None) -> None:
    """Raise `DataError` for too few rows with a target."""
    if count < FEWEST_ROWS:
        rows = "1 row" if count == 1 else f"{count} rows"
        raise DataError(
            f"{data} has {rows} with a target, too few to learn from and to judge by: give "
            f"{FEWEST_ROWS} or more"
        )


def check_parts(rows: Mapping[str, int], classes: int | None, target: str) -> None:
    """Raise `DataError` for a part without a row, or training rows of fewer than two classes.

    `rows` counts those of each part; `classes` are those that the training rows have, None for a
    regression.
    """
    for name, count in rows.items():
        if count == 0:
            raise DataError(
                f"no row with a target is left for {PART_NAMES[name]}: give more rows, or a larger "
                "share"
            )
    if classes is not None and classes < 2:
        raise DataError(
            f"the training rows have one class of the target {target!r} only: choose a different "
            "--split, or give more rows"
        )

"""The column to predict: classes, or a number."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trueloop.errors import DataError, nearest
from trueloop.tasks.table.column_encoding import CellFormat, RowErrors, categories, kind_of, numbers

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

FEW = 20
"""Whole numbers with at most so many different values are taken for classes."""
MOST_CLASSES = 1000


@dataclass
class ClassTarget:
    """A target of two or more classes, as text."""

    name: str
    classes: list[str]
    """In ascending order, numbers by value."""
    numeric: bool
    """Whether the classes are numbers, so that 1, 1.0 and 01 are the same."""

    @classmethod
    def of(
        cls, column: pl.Series, reading: CellFormat, errors: RowErrors | None = None
    ) -> ClassTarget:
        """The classes of the whole column. Raises `DataError` unless there are two or more."""
        name, numeric = column.name, kind_of(column, reading) == "number"
        texts = class_texts(column, reading, numeric, errors).drop_nulls()
        return cls.of_texts(name, texts.unique().to_list(), len(texts), numeric=numeric)

    @classmethod
    def of_texts(cls, name: str, found: list[str], known: int, *, numeric: bool) -> ClassTarget:
        """The same, by the different classes that were `found` in so many rows with one."""
        assert found, "a target without a value is refused before"
        if len(found) < 2:
            raise DataError(
                f"the target {name!r} has one class only ({found[0]!r:.42}): nothing to learn "
                "from it, choose a different --target"
            )
        if len(found) > MOST_CLASSES or 2 * len(found) > known:
            raise DataError(
                f"the target {name!r} has {len(found)} different values in {known} rows, too many "
                "for classes: choose a different --target, or for numbers write --kind regression"
            )
        return cls(name, sorted(found, key=_order), numeric)

    def texts(
        self, column: pl.Series, reading: CellFormat, errors: RowErrors | None = None
    ) -> pl.Series:
        """The names of the classes in a column, null where missing. A cell that is not a number
        among classes that are, or a class that training did not have, goes to `errors` and becomes
        null."""
        import polars as pl

        errors = RowErrors(strict=True) if errors is None else errors
        texts = class_texts(column, reading, self.numeric, errors, self.classes)
        unknown = ~texts.is_in(self.classes) & texts.is_not_null()
        if unknown.any():
            value = texts[int(unknown.arg_max() or 0)]
            errors.add(
                unknown.arg_true(),
                lambda k: (
                    f"{errors.name(k)} has the target {texts[k]!r:.42}, a class that "
                    "training did not have"
                ),
                nearest(value, self.classes),
            )
        return pl.select(pl.when(~unknown).then(texts)).to_series()

    def encode(self, texts: pl.Series) -> npt.NDArray[np.int64]:
        """Class indices, int64 (rows,), of the names of known classes."""
        import polars as pl

        indices = list(range(len(self.classes)))
        found = texts.replace_strict(self.classes, indices, return_dtype=pl.Int64)
        return found.to_numpy().astype(np.int64, copy=True)

    def state(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class NumberTarget:
    """A target that is a number; mean and standard deviation are those of the training rows."""

    name: str
    mean: float
    deviation: float
    log: bool
    """Whether mean and deviation are those of the logarithm, on which the model is trained."""

    @classmethod
    def fit(cls, name: str, values: npt.NDArray[np.float64], *, log: bool) -> NumberTarget:
        """Fitted on the training rows. Raises `DataError` if they all have the same target."""
        values = np.log(values) if log else values
        return cls.of_moments(name, float(values.mean()), float(values.std()), log=log)

    @classmethod
    def of_moments(cls, name: str, mean: float, deviation: float, *, log: bool) -> NumberTarget:
        """`fit`, from the mean and the standard deviation (of the logarithms, with `log`)."""
        if not deviation > 0:
            raise DataError(
                f"the target {name!r} is {mean:g} in every training row: nothing to learn from "
                "it, choose a different --target"
            )
        return cls(name, mean, deviation, log)

    def state(self) -> dict[str, Any]:
        return asdict(self)


def is_number(
    column: pl.Series,
    kind: str,
    reading: CellFormat,
    errors: RowErrors | None = None,
    *,
    found: str | None = None,
) -> bool:
    """Whether the target calls for regression; `kind` is auto, classification or regression.

    `found` is the column's kind, where it is known by more rows than these.
    """
    found = kind_of(column, reading) if found is None else found
    assert found != "empty", "a target without a value is refused before"
    if kind == "regression":
        if found != "number":
            raise DataError(
                f"the target {column.name!r} contains text such as {_example(column)!r}, not "
                "numbers for a regression: write --kind classification, or choose a different "
                "--target"
            )
        return True
    if kind == "classification" or found == "category":
        return False
    if found == "date":
        raise DataError(
            f"the target {column.name!r} contains dates: save it as a number, or choose a "
            "different --target"
        )
    values = np.unique(numbers(column, reading, errors))
    values = values[~np.isnan(values)]
    return len(values) > 2 and (len(values) > FEW or bool((values != np.round(values)).any()))


def class_texts(
    column: pl.Series,
    reading: CellFormat,
    numeric: bool,
    errors: RowErrors | None = None,
    classes: list[str] | None = None,
) -> pl.Series:
    """The cells as the names of classes: written as `classes` are, where they are known."""
    import polars as pl

    whole = None if classes is None else not any("." in name for name in classes)
    if numeric:
        values = numbers(column, reading, errors)
        return categories(pl.Series(column.name, values, nan_to_null=True), whole)
    return categories(column, whole)


def _example(column: pl.Series) -> str:
    return str(column.drop_nulls()[0])[:40]


def _order(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


def target_values(
    target: ClassTarget | NumberTarget, column: pl.Series, reading: CellFormat, errors: RowErrors
) -> tuple[Any, npt.NDArray[np.bool_]]:
    """The target column as numbers or class names, and which rows have one."""
    if not isinstance(target, NumberTarget):
        texts = target.texts(column, reading, errors)
        return texts, texts.is_not_null().to_numpy()
    values = numbers(column, reading, errors)
    wrong = values <= 0 if target.log else np.zeros(len(values), dtype=bool)
    errors.add(
        np.flatnonzero(wrong).tolist(),
        lambda k: f"{errors.name(k)} has the target {values[k]:g}, which has no logarithm",
        "leave out --log-target",
    )
    too_large = np.abs(values) > np.finfo(np.float32).max
    errors.add(
        np.flatnonzero(too_large).tolist(),
        lambda k: f"{errors.name(k)} has the target {values[k]:g}, which is too large for float32",
        "correct it, or save the target in a larger unit",
    )
    return values, ~(np.isnan(values) | wrong | too_large)


def encode_target(
    target: ClassTarget | NumberTarget, values: Any, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.generic]:
    """Float32 in the target's own unit, or int64 class indices, (rows,)."""
    if isinstance(target, NumberTarget):
        return np.asarray(values[rows], dtype=np.float32)
    return target.encode(values.gather(rows))

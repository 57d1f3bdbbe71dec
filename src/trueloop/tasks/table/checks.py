"""Checks of a table's rows and columns before anything is trained on them.

The thresholds are strict on purpose: a finding about ordinary data would cost more trust than one
that is missed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from trueloop.tasks.data_findings import DataFinding, is_much, rare_class, shared_samples
from trueloop.tasks.table.column_encoding import DATE_PARTS, ParsedColumns, TableEncoder
from trueloop.tasks.table.command_words import option_value
from trueloop.tasks.table.duplicate_columns import groups_of_equals
from trueloop.tasks.table.leakage import Column, leaking_columns

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

    Ints = npt.NDArray[np.int64]

MOST_ROWS = 20_000
"""Training rows that columns are measured on."""
_LISTED = 6
_FEWEST_ROWS = 100
_UNIQUE = 0.9
_IN_ORDER = 0.99
_MANY_VALUES = 50
_COMMON = 0.1
_SPECIFIC = 3
"""Columns of many values, none of them common, in which rows are not all equal by chance."""
_CONSTANT = ("the same value in every row", "empty in every row")
_NAME_OF_ID = re.compile(
    r"(?:^|[_\W])(?:id|ids|idx|index|uuid|guid|key|row|number|nr|no)$|[a-z](?:Id|ID)$", re.I
)
_COUNTS_TIME = re.compile(r"year|date|time|day|month|week|hour|minute|second|step|age", re.I)


@dataclass(frozen=True)
class TableChecks:
    """A table that has been read and divided."""

    target: str
    kinds: dict[str, str]
    """`number`, `date`, `category` or `empty` of each column of the file that is to be an input."""
    raw: ParsedColumns
    encoder: TableEncoder
    parts: dict[str, Ints]
    """The rows of `train` and `val`, and of `test` if there is one."""
    targets: npt.NDArray[np.generic]
    """Of every row: class indices, or numbers."""
    classes: list[str] | None
    class_rows: list[int] | None = None
    """Training rows of each class, where these are a sample of them."""
    dependent: list[DataFinding] = field(default_factory=list)
    """On rows that should not be divided at random."""

    def findings(self) -> list[DataFinding]:
        """All findings, the worst first."""
        identifiers = [name for name in self._used() if _is_identifier(self.raw, name)]
        found = [
            *self._leaks(),
            *self._shared_rows(set(identifiers)),
            *map(_of_identifier, identifiers),
            *self._duplicates(),
            *self._constants(),
            *self._rare_class(),
            *self.dependent,
        ]
        order = ("error", "warning", "advice")
        return sorted(found, key=lambda each: order.index(each.severity))

    def _used(self) -> list[str]:
        """The inputs, dates by their parts; without columns that the training does not use."""
        numbers = [each.name for each in self.encoder.numbers]
        return numbers + [each.name for each in self.encoder.categories]

    @cached_property
    def _rows(self) -> Ints:
        """Some training rows, in random order."""
        train = self.parts["train"]
        order = np.random.default_rng(0).permutation(len(train))[:MOST_ROWS]
        return train[order]

    @cached_property
    def _columns(self) -> list[Column]:
        """The inputs in these rows."""
        columns = []
        for name in self._used():
            if name in self.raw.numbers:
                columns.append(Column(name, self.raw.numbers[name][self._rows], ordered=True))
            else:
                texts = self.raw.categories[name].gather(self._rows)
                columns.append(Column(name, _numbered(texts), ordered=False))
        return columns

    def _leaks(self) -> list[DataFinding]:
        if len(self.kinds) < 2:
            return []  # with one column, to predict the target from it is the task
        found = []
        for leak in leaking_columns(
            self._columns, self.targets[self._rows], is_class=self.classes is not None
        ):
            name = leak.name if leak.name in self.kinds else leak.name.rpartition(": ")[0]
            finding = DataFinding(
                code="TL710",
                severity="error" if leak.is_sure else "advice",
                subject=f"column {leak.name!r}",
                message=f"Column {leak.name!r} by itself predicts the target {self.target!r}: "
                f"{leak.how}.",
                fix=f"Write --drop {option_value([name])}, unless the column is known when the "
                "model is used.",
            )
            found.append(finding)
        return found

    def _shared_rows(self, identifiers: set[str]) -> list[DataFinding]:
        import polars as pl

        used = {name: None for name in self._used() if name not in identifiers}
        if not used:
            return []
        columns = [
            pl.Series(name, self.raw.numbers[name], nan_to_null=True)
            if name in self.raw.numbers
            else self.raw.categories[name]
            for name in used
        ]
        unique = [column.alias(str(k)) for k, column in enumerate(columns)]
        hashes = pl.DataFrame(unique).hash_rows(seed=0).to_numpy()
        trained = hashes[self.parts["train"]]
        sizes = {name: len(rows) for name, rows in self.parts.items() if name != "train"}
        shared = {name: int(np.isin(hashes[self.parts[name]], trained).sum()) for name in sizes}
        if not any(is_much(shared[name], sizes[name]) for name in sizes):
            return []
        specific = {
            each.name if each.name in self.kinds else each.name.rpartition(": ")[0]
            for each in self._columns
            if each.name in used and _is_specific(each.values)
        }
        if len(specific) >= _SPECIFIC:
            return shared_samples(shared, sizes, noun="rows", severity="warning")
        note = " With so few different values, rows may be equal by chance."
        return shared_samples(shared, sizes, noun="rows", severity="advice", note=note)

    def _duplicates(self) -> list[DataFinding]:
        groups = groups_of_equals(self._columns)
        if not groups:
            return []
        more = f" and {len(groups) - _LISTED} more" if len(groups) > _LISTED else ""
        listed = "; ".join(_listed(group) for group in groups[:_LISTED])
        later = [name for group in groups for name in group[1:]]
        finding = DataFinding(
            code="TL715",
            severity="advice",
            subject=f"columns {_listed(later)}",
            message=f"Columns have the same values, up to names or units: {listed}{more}.",
            fix=f"Write --drop {option_value(later[:_LISTED])}: one of each is enough.",
        )
        return [finding]

    def _constants(self) -> list[DataFinding]:
        dropped = self.encoder.dropped
        constant = []
        for name, kind in self.kinds.items():
            parts = [f"{name}: {part}" for part in DATE_PARTS] if kind == "date" else [name]
            if all(dropped.get(part) in _CONSTANT for part in parts):
                constant.append(name)
        if not constant:
            return []
        one = len(constant) == 1
        finding = DataFinding(
            code="TL714",
            severity="advice",
            subject=f"column{'' if one else 's'} {_listed(constant)}",
            message=f"Column{'' if one else 's'} {_listed(constant)} "
            f"{'has' if one else 'have'} the same value (or none) in every training row, and "
            f"{'is' if one else 'are'} not used.",
            fix="Check that the file is complete; --drop leaves a column out without this line.",
        )
        return [finding]

    def _rare_class(self) -> list[DataFinding]:
        if self.classes is None:
            return []
        counts = self.class_rows
        if counts is None:
            targets = self.targets[self.parts["train"]].astype(np.int64)
            counts = np.bincount(targets, minlength=len(self.classes)).tolist()
        return rare_class(dict(zip(self.classes, counts, strict=True)))


def _numbered(texts: pl.Series) -> npt.NDArray[np.float64]:
    """Each text as a number, NaN where it is missing."""
    import polars as pl

    return texts.rank("dense").cast(pl.Float64).to_numpy().astype(np.float64)


def _is_identifier(raw: ParsedColumns, name: str) -> bool:
    """Whether it is a row ID: a whole number, unique in almost every row, and either called so or
    the row's number in the file."""
    values = raw.numbers.get(name)
    if values is None or len(values) < _FEWEST_ROWS or np.isnan(values).any():
        return False
    if _COUNTS_TIME.search(name) or (values != np.round(values)).any():
        return False
    if len(np.unique(values)) < _UNIQUE * len(values):
        return False
    return bool(_NAME_OF_ID.search(name) or (np.diff(values) == 1).mean() >= _IN_ORDER)


def _of_identifier(name: str) -> DataFinding:
    return DataFinding(
        code="TL717",
        severity="warning",
        subject=f"column {name!r}",
        message=f"Column {name!r} is an input and looks like a row ID (almost every value is "
        "unique). What a model learns from it does not apply to other rows.",
        fix=f"Write --drop {option_value([name])}.",
    )


def _is_specific(values: npt.NDArray[np.float64]) -> bool:
    """Many values, none of them common."""
    _, counts = np.unique(values, return_counts=True)
    return len(counts) > _MANY_VALUES and counts.max() <= _COMMON * len(values)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(repr, names[:_LISTED])) + more

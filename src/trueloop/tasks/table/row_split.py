"""Which part each row of a table on disk comes to: a function of its number, or of its group."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from trueloop.errors import DataError
from trueloop.folds import FoldNumber
from trueloop.seed import mix_array

if TYPE_CHECKING:
    import polars as pl

    from trueloop.tasks.table.column_encoding import CellFormat

Parts = npt.NDArray[np.uint8]

PARTS = ("train", "val", "test")
_PURPOSE = int.from_bytes(b"part")


@dataclass(frozen=True, kw_only=True)
class Division:
    """The part of each row, from its number and the seed; of a split by group, from the group and
    the seed. Nothing is kept for a row: a share of the rows comes to a part as by drawing lots."""

    seed: int = 0
    shares: dict[str, float] = field(default_factory=dict)
    """Of `val` and `test`; what is left is for training."""
    group: str | None = None
    """The column of groups."""
    fold: FoldNumber | None = None
    """Which part of the rows that are not in the test part validates, in place of its share."""
    all_to: str | None = None
    """The part that every row comes to, whatever the shares."""

    def facts(self) -> dict[str, Any]:
        """The facts that the parts depend on, as plain data."""
        facts = asdict(self)
        if self.fold is None:
            del facts["fold"]  # as it was before there were folds
        return facts

    @property
    def columns(self) -> list[str]:
        """The columns that `parts` reads."""
        return [self.group] if self.group is not None and self.all_to is None else []

    def parts(self, frame: pl.DataFrame, start: int, reading: CellFormat) -> Parts:
        """The index in `PARTS` of each row's part, of consecutive rows from number `start` on."""
        if self.all_to is not None:
            return np.full(frame.height, PARTS.index(self.all_to), dtype=np.uint8)
        if self.group is not None:
            words = _words(frame.get_column(self.group), start, reading)
        else:
            words = np.arange(start, start + frame.height, dtype=np.uint64)
        drawn = (mix_array(words, self.seed, _PURPOSE) >> np.uint64(11)) * 2.0**-53
        test = self.shares.get("test", 0.0)
        found = np.zeros(frame.height, dtype=np.uint8)
        # The test part is taken first: it stays the same when the share of the other changes.
        if self.fold is None:
            validates = drawn < test + self.shares.get("val", 0.0)
        else:
            fold_of = (drawn - test) / (1 - test) * self.fold.of
            validates = np.floor(fold_of) == self.fold.number - 1
        found[validates] = PARTS.index("val")
        found[drawn < test] = PARTS.index("test")
        return found


def _words(column: pl.Series, start: int, reading: CellFormat) -> npt.NDArray[np.uint64]:
    """A number for each group, which depends only on its name. Raises `DataError` for a row without
    one."""
    import polars as pl

    names = column.cast(pl.String)
    missing = names.is_null() | names.str.to_lowercase().is_in(reading.missing).fill_null(False)
    if missing.any():
        row = start + int(missing.arg_max() or 0) + 1
        raise DataError(
            f"row {row:,} has no value in {column.name!r}, by which --split divides: fill the cell "
            "or remove the row"
        )
    different = names.unique()
    words = [
        int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        for name in different.to_list()
    ]
    found = names.replace_strict(different, pl.Series(words, dtype=pl.UInt64))
    return found.to_numpy().astype(np.uint64)

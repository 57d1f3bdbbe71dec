"""Columns of Arrow's types as tensors, one row or many at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from trueloop.errors import DataError


class FixedShapeColumn:
    """A column whose rows are numbers, or arrays of one shape."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Shape (len(rows), *shape of a row); a new array."""
        return np.asarray(self.values[rows])

    def __getitem__(self, row: int) -> torch.Tensor:
        return torch.from_numpy(self.values[row : row + 1].copy())[0]


class Joined:
    """The number columns of some blocks, one block after the other: a batch takes its rows of
    each column in one go."""

    def __init__(self, blocks: Mapping[int, Mapping[str, Column]]) -> None:
        self._numbers = np.array(sorted(blocks), dtype=np.int64)
        chosen = [blocks[number] for number in self._numbers.tolist()]
        self.columns = {
            name: FixedShapeColumn(np.concatenate([_values(columns[name]) for columns in chosen]))
            for name in chosen[0]
        }
        counts = np.array([len(_values(next(iter(each.values())))) for each in chosen])
        self._firsts = np.cumsum(counts) - counts

    def rows(self, numbers: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Where these rows of these blocks are; -1 for those of other blocks."""
        places = np.searchsorted(self._numbers, numbers)
        places[places == len(self._numbers)] = 0
        is_here = self._numbers[places] == numbers
        return np.where(is_here, self._firsts[places] + rows, -1)


def _values(column: Column) -> np.ndarray:
    assert isinstance(column, FixedShapeColumn)
    return column.values


class Lists:
    """A column whose rows are lists of numbers, of any length."""

    def __init__(self, values: np.ndarray, offsets: np.ndarray) -> None:
        self._values = values
        self._offsets = offsets

    def __getitem__(self, row: int) -> torch.Tensor:
        start, stop = self._offsets[row : row + 2]
        return torch.from_numpy(self._values[start:stop].copy())


class Objects:
    """A column of text, bytes, or anything else: Python objects."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __getitem__(self, row: int) -> Any:
        return self._values[row].as_py()


Column = FixedShapeColumn | Lists | Objects


def column(array: Any, name: str, where: str, is_decoded: bool) -> Column:
    """The column of an Arrow array.

    `is_decoded`: a function of the user's takes its values, so that they may be of any type, and
    None. Otherwise `DataError` for values that are not there and types that make no tensor.
    """
    import pyarrow as pa
    import pyarrow.types as kinds

    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
        if isinstance(array, pa.ChunkedArray):
            array = pa.concat_arrays(array.chunks)
    kind = array.type
    if is_decoded:
        return Objects(array)
    if array.null_count:
        row = array.is_null().index(True).as_py()
        raise DataError(
            f"the column {name!r} has {array.null_count} nulls in {where}, the first in row {row} "
            f"there: fill them, or give decode={{{name!r}: function}}, which is called with None"
        )
    if kinds.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if (numbers := _numbers(array)) is not None:
        return FixedShapeColumn(numbers)
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        values = _numbers(array.values)
        if values is not None and not array.values.null_count:
            return Lists(values, array.offsets.to_numpy())
    if is_text(kind):
        return Objects(array)
    raise DataError(
        f"the column {name!r} of {where} is of type {kind}, which makes no tensor: leave it out "
        f"with fields=[...], or give decode={{{name!r}: function}}"
    )


def is_text(kind: Any) -> bool:
    """Whether values of this Arrow type are str or bytes."""
    import pyarrow.types as kinds

    tests = (kinds.is_string, kinds.is_large_string, kinds.is_binary, kinds.is_large_binary)
    return any(test(kind) for test in tests) or kinds.is_fixed_size_binary(kind)


def _numbers(array: Any) -> np.ndarray | None:
    """An array with one row for each of `array`; None if its rows are not of one shape."""
    import pyarrow as pa
    import pyarrow.types as kinds

    kind = array.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return np.asarray(array.to_numpy_ndarray())
    if isinstance(kind, pa.BaseExtensionType):
        return _numbers(array.storage)
    if kinds.is_fixed_size_list(kind):
        inner = array.flatten()
        if inner.null_count:
            return None
        rows = _numbers(inner)
        if rows is None:
            return None
        return rows.reshape(len(array), kind.list_size, *rows.shape[1:])
    if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    return None

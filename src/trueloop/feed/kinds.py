"""Which kind of data a feed was given, and what to write where it can be of none."""

from __future__ import annotations

import os
from collections.abc import Sized
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Subset

from trueloop import _options
from trueloop.errors import ConfigError, DataError

_TABLES = ("pandas", "polars", "pyarrow", "modin", "cudf", "dask", "xarray")
"""Libraries whose objects look like sequences of samples, and are sequences of columns or rows by
label."""


class NoLengthError(DataError, TypeError):
    """The number of batches is unknown. A `TypeError` too, so that `list(feed)` works."""


def is_iterable(data: Any) -> bool:
    """Whether `data` can only be read in sequence."""
    return isinstance(data, IterableDataset) or (
        hasattr(data, "__iter__") and not hasattr(data, "__getitem__")
    )


def reads_ranges(data: Any) -> bool:
    """Whether `data` is a stream that reads any range of itself: `iter_range(start, stop)`."""
    return is_iterable(data) and callable(getattr(data, "iter_range", None))


def check_kind(data: Any) -> None:
    """`DataError` for what nobody means as data, whatever the other arguments are."""
    kind = type(data).__name__
    if isinstance(data, (str, bytes, os.PathLike)):
        raise DataError(
            f"the data is {_options.shown(data)}, a name and not the samples: read it first, and "
            "give tensors, arrays or a data set"
        )
    if isinstance(data, type):
        raise DataError(f"the data is the class {data.__name__} itself: write {data.__name__}(...)")
    if hasattr(data, "__next__"):
        raise DataError(
            f"the data is a one-shot {kind}, used up after one epoch: give a list of its samples, "
            "the DataLoader itself, or an object whose __iter__ starts afresh each time"
        )
    if isinstance(data, (set, frozenset)):
        raise DataError(
            f"the data is a {kind}, which has no order to come back to: write sorted(data) or "
            "list(data)"
        )
    check_not_table(data, "the data")


def check_not_table(data: Any, name: str) -> None:
    """`DataError` for data frames, series and sparse matrices, with what to write instead."""
    library, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if library in _TABLES:
        shown = f"{name} is a {library} {kind}"
        if hasattr(type(data), "columns"):
            raise DataError(
                f"{shown}, whose columns are not samples: give arrays, e.g. "
                "Feed((frame[inputs].to_numpy().astype('float32'), frame[target].to_numpy()), 32)"
            )
        raise DataError(f"{shown}: give an array, {kind.lower()}.to_numpy()")
    if library == "scipy":
        raise DataError(f"{name} is a scipy {kind}: give an array, matrix.toarray()")


def check_data_set(data: Any) -> None:
    """`DataError` unless `data` has the methods of a map-style or an iterable data set."""
    kind = type(data).__name__
    if reads_ranges(data) and not defines_len(data):
        raise DataError(
            f"the data set {kind} has iter_range and no __len__: define __len__ (samples per "
            "epoch), so that each rank knows where the last range ends"
        )
    if isinstance(data, IterableDataset):
        return
    if isinstance(data, list) and any(isinstance(part, DataLoader) for part in data):
        raise DataError(
            "the data is a list of DataLoaders: give one of them, or "
            "Feed(torch.utils.data.ConcatDataset([loader.dataset for loader in loaders]), 32)"
        )
    if type(data) is Subset and len(data.indices):
        _check_no_mask(np.asarray(data.indices[0]))
    if hasattr(data, "__getitem__"):
        if not defines_len(data):
            raise DataError(
                f"the data set {kind} has __getitem__ and no __len__: define __len__ (or only "
                "__iter__, for samples that can only be read in sequence)"
            )
    elif not hasattr(data, "__iter__"):
        raise DataError(
            f"the data is {_options.kind_of(data)}: give tensors, arrays, a data set with "
            "__getitem__ and __len__, one with __iter__, or a DataLoader"
        )


def subset_rows(subset: Subset[Any]) -> npt.NDArray[np.int64]:
    """The rows that a `Subset` means, each from 0 on; `DataError` where they are none of its data
    set's."""
    rows, size = np.asarray(subset.indices), len(cast(Sized, subset.dataset))
    if not rows.size:
        return rows.astype(np.int64)
    _check_no_mask(rows)
    if rows.dtype.kind not in "iu":
        raise DataError(
            f"the indices of the Subset are {rows.dtype} numbers: give integers, "
            "Subset(dataset, [int(row) for row in indices])"
        )
    wrong = rows[(rows < -size) | (rows >= size)]
    if wrong.size:
        raise DataError(
            f"the Subset has the index {wrong[0]}, and its data set has {size} samples: give "
            f"indices from 0 to {size - 1}"
        )
    return np.where(rows < 0, rows + size, rows).astype(np.int64)


def _check_no_mask(rows: npt.NDArray[Any]) -> None:
    # Taken for indices, a mask means the samples 0 and 1 again and again.
    if rows.dtype.kind == "b":
        raise DataError(
            "the indices of the Subset are a mask of True and False: give numbers, "
            "Subset(dataset, mask.nonzero().flatten().tolist())"
        )


def defines_len(data: Any) -> bool:
    """Whether `len(data)` can be asked for; torch's `Dataset` defines none."""
    return callable(getattr(type(data), "__len__", None))


def length_of(data: Any) -> int:
    """`len(data)`; `DataError` where its `__len__` raises, or returns what is not a length."""
    try:
        return len(data)
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise DataError(
            f"the __len__ of {type(data).__name__} does not return a length ({reason[:120]}): let "
            "it return the number of samples, an integer of at least 0"
        ) from error


def check_tensor(tensor: Tensor, name: str) -> None:
    """`DataError` for a tensor whose rows cannot be taken by index."""
    if tensor.is_nested:
        raise DataError(
            f"{name} is a nested tensor, whose rows differ in shape: write "
            "tensor.to_padded_tensor(0.0), or give a list of the samples and a collate_fn"
        )
    if tensor.layout is not torch.strided:
        raise DataError(f"{name} is a {tensor.layout} tensor: write tensor.to_dense()")
    if tensor.is_quantized:
        raise DataError(f"{name} is a quantized tensor: write tensor.dequantize()")
    if tensor.is_meta:
        raise DataError(
            f"{name} is on the device meta, where tensors have no values: make it on the CPU, or "
            "load its values"
        )


def check_stream(workers: int, transform: Any) -> None:
    """Raise `ConfigError` for options that an iterable data set cannot have."""
    if workers > 1:
        raise ConfigError(
            f"workers={workers} would each read the whole of an iterable data set, and every "
            f"sample would come {workers} times: write workers=1"
        )
    if transform is not None:
        raise ConfigError(
            "transform needs the samples' indices, and an iterable data set has none: change the "
            "samples inside it"
        )

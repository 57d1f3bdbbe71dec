"""Tensors, arrays and memory maps, fetched as whole batches by index, never sample by sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import Dataset, Subset, TensorDataset

from trueloop import _options
from trueloop.errors import DataError
from trueloop.feed import transfer
from trueloop.feed.ahead import FetchAhead
from trueloop.feed.kinds import check_not_table, check_tensor, subset_rows
from trueloop.feed.order import Indices, SampleOrder
from trueloop.feed.parts import Stretch

_CHUNK_BYTES = 1 << 20
_CHUNK_ROWS = 1 << 14

Leaf = Tensor | npt.NDArray[Any]
Assemble = Callable[[tuple[Tensor, ...]], Any]


class Arrays:
    """A source of batches: one or more arrays whose first dimension counts the samples.

    Batches have the structure of the data (a tuple gives tuples, a dict dicts) and are private
    copies: writing into one changes neither the data nor any other batch.
    """

    def __init__(self, data: Any) -> None:
        self._rows, data = _unwrap(data)
        _check_not_samples(data)
        named: list[tuple[str, Leaf]] = []
        self._assemble = _assembler(data, named, "")
        sizes = {name: int(leaf.shape[0]) for name, leaf in named}
        first, size = next(iter(sizes.items()))
        for name, other in sizes.items():
            if other != size:
                raise DataError(
                    f"the parts of the data differ in length: {first} has {size} samples, {name} "
                    f"has {other}; give parts with the same first dimension (and wrap a list of "
                    "samples in a Dataset)"
                )
        self.samples = size if self._rows is None else len(self._rows)
        self.is_stream = False
        self._leaves = [leaf for _, leaf in named]
        first_leaf = self._leaves[0]
        self.device = first_leaf.device if isinstance(first_leaf, Tensor) else None
        self._chunk_rows = self._rows_at_once(size)

    def batches(
        self,
        order: SampleOrder,
        stretches: Sequence[Stretch],
        device: torch.device | None,
        fetch_ahead: FetchAhead,
    ) -> Iterator[Any]:
        """The batches at these positions of the order; no other rows are read.

        Many small batches are gathered at once, up to 1 MiB, and cut apart; large ones singly, and
        those of a memory map too, since each row may cost a read from the disk.
        """
        rows = self._chunk_rows
        chunks: Iterator[list[Tensor]] = (
            self._gather(order, chunk) for stretch in stretches for chunk in stretch.chunks(rows)
        )
        if device is not None and device.type == "cuda":
            chunks = map(transfer.pin, chunks)
            if self.device is None or self.device.type == "cpu":
                chunks = fetch_ahead.over(chunks, device)
        # Apart from the chunks, of which one is ahead on its way to the device.
        widths = (stretch.width for stretch in stretches for _ in stretch.chunks(rows))
        assemble = self._assemble
        for chunk, width in zip(transfer.to_device(chunks, device), widths, strict=True):
            # `unsafe_split` is `split` with version counters of their own, so that autograd does
            # not take writing into one batch for a change of its neighbours.
            cut = zip(*(torch.unsafe_split(part, width) for part in chunk), strict=True)
            yield from cut if assemble is tuple else map(assemble, cut)

    def is_cheap(self, samples: int) -> bool:
        """Whether a batch of so many samples takes microseconds: less than 1 MiB, in memory."""
        return samples <= self._chunk_rows

    def _rows_at_once(self, size: int) -> int:
        if any(isinstance(leaf, np.memmap) for leaf in self._leaves):
            return 1
        row_bytes = sum(leaf.nbytes for leaf in self._leaves) // max(size, 1)
        return min(_CHUNK_BYTES // max(row_bytes, 1), _CHUNK_ROWS)

    def _gather(self, order: SampleOrder, chunk: Stretch) -> list[Tensor]:
        """The samples at the positions of `chunk`, copied out of each leaf."""
        if order.in_sequence and self._rows is None and chunk.is_contiguous:
            return [_copy(leaf, chunk.first, chunk.stop) for leaf in self._leaves]
        indices = order.of(chunk)
        if self._rows is not None:
            indices = self._rows[indices]
        return [_take(leaf, indices) for leaf in self._leaves]


def is_arrays(data: Any) -> bool:
    """Whether `data` is for `Arrays`: arrays, or a tuple or dict of anything, or a list of arrays.

    A list is ambiguous: one of arrays only (nested or not) is arrays, any other is a list of
    samples, and so a map-style data set, as each list is that comes with a `collate_fn`. A subclass
    of `TensorDataset` that fetches in its own way is a map-style data set too.
    """
    if isinstance(data, Dataset):
        inner = data
        while type(inner) is Subset:
            inner = inner.dataset
        return isinstance(inner, (Tensor, np.ndarray)) or _is_tensor_dataset(inner)
    if isinstance(data, list):
        return _only_arrays(data)
    return isinstance(data, (Tensor, np.ndarray, tuple, Mapping))


def _only_arrays(data: Any) -> bool:
    if isinstance(data, (Tensor, np.ndarray)):
        return data.ndim > 0
    parts = data.values() if isinstance(data, Mapping) else data
    return isinstance(data, (list, tuple, Mapping)) and bool(data) and all(map(_only_arrays, parts))


def _is_tensor_dataset(data: Any) -> bool:
    return (
        isinstance(data, TensorDataset)
        and type(data).__getitem__ is TensorDataset.__getitem__
        and type(data).__len__ is TensorDataset.__len__
    )


def _unwrap(data: Any) -> tuple[Indices | None, Any]:
    """Torch's wrappers taken off: which rows are meant (None: all), and the arrays themselves."""
    if isinstance(data, Subset):
        inner, data_of = _unwrap(data.dataset)
        rows = subset_rows(data)
        return (rows if inner is None else inner[rows]), data_of
    if isinstance(data, TensorDataset):
        return None, data.tensors
    return None, data


def _check_not_samples(data: Any) -> None:
    """A list of samples is not to be taken for a list of parts, each with its own rows."""
    if type(data) is not list or len(data) <= 3:
        return
    first = data[0]
    is_leaf = isinstance(first, (Tensor, np.ndarray))
    if is_leaf and all(
        isinstance(part, type(first)) and (part.shape, part.dtype) == (first.shape, first.dtype)
        for part in data
    ):
        rows = first.shape[0]
        if len(data) > rows:
            stack = "torch.stack" if isinstance(first, Tensor) else "numpy.stack"
            raise DataError(
                f"the data is a list of {len(data)} arrays of {rows} rows each: write "
                f"{stack}(data) for {len(data)} samples, or tuple(data) for {rows} samples of "
                f"{len(data)} parts"
            )


def _assembler(data: Any, found: list[tuple[str, Leaf]], name: str) -> Assemble:
    """Collects the leaves of `data` depth-first; returns what rebuilds its structure from them.

    `tuple` itself is returned for a flat tuple, the structure that needs no rebuilding.
    """
    called = f"data{name}" if name else "the data"
    if not isinstance(data, (Tensor, np.ndarray, Mapping, tuple, list)):
        check_not_table(data, called)
        raise DataError(
            f"{called} is {_options.kind_of(data)}, not a tensor or an array: convert it, or "
            "write a Dataset that returns one sample at a time"
        )
    if isinstance(data, (tuple, list)) and data and isinstance(data[0], (int, float)):
        raise DataError(
            f"{called} is a {type(data).__name__} of numbers, not a tensor or an array: write "
            "torch.tensor(...) around it"
        )
    if isinstance(data, (Tensor, np.ndarray)):
        place = len(found)
        found.append((called, _leaf(data, called)))
        return lambda row: row[place]
    if not data:
        raise DataError(f"{called} is an empty {type(data).__name__}: give tensors or arrays")
    if isinstance(data, Mapping):
        keys = list(data)
        parts = [_assembler(data[key], found, f"{name}[{key!r}]") for key in keys]
        return lambda row: {key: part(row) for key, part in zip(keys, parts, strict=True)}
    outermost = not name
    parts = [_assembler(part, found, f"{name}[{place}]") for place, part in enumerate(data)]
    if hasattr(data, "_fields"):
        kind = type(data)
        return lambda row: kind(*(part(row) for part in parts))
    if isinstance(data, list):
        return lambda row: [part(row) for part in parts]
    if outermost and all(isinstance(part, (Tensor, np.ndarray)) for part in data):
        return tuple
    return lambda row: tuple(part(row) for part in parts)


def _leaf(data: Leaf, name: str) -> Leaf:
    """`data` in the form it is gathered from fastest, without a copy."""
    if isinstance(data, Tensor):
        check_tensor(data, name)
    if data.ndim == 0:
        raise DataError(f"{name} is a single number: its first dimension must count the samples")
    if isinstance(data, Tensor):
        return data.detach()
    if data.dtype.kind not in "biufc" or data.dtype.itemsize > (
        16 if data.dtype.kind == "c" else 8
    ):
        raise DataError(
            f"{name} has dtype {data.dtype}, which torch does not know: convert it to numbers, "
            "e.g. with astype('float32')"
        )
    # A tensor over the same memory gathers faster; but torch cannot wrap a memory map (which is to
    # be read, not taken over), read-only memory, reversed strides or foreign byte order, nor gather
    # from its wider unsigned types.
    plain = (
        not isinstance(data, np.memmap)
        and data.flags.writeable
        and data.dtype.isnative
        and all(stride >= 0 and stride % data.itemsize == 0 for stride in data.strides)
        and data.dtype not in (np.uint16, np.uint32, np.uint64)
    )
    return torch.from_numpy(data) if plain else data


def _take(leaf: Leaf, indices: Indices) -> Tensor:
    """The rows at `indices`, in that order: a new tensor where the leaf lives."""
    if isinstance(leaf, Tensor):
        return leaf.index_select(0, torch.from_numpy(indices).to(leaf.device))
    return _tensor(np.take(leaf, indices, axis=0))


def _copy(leaf: Leaf, start: int, stop: int) -> Tensor:
    """Rows `start` to `stop` - 1: a new tensor where the leaf lives."""
    if isinstance(leaf, Tensor):
        return leaf[start:stop].clone(memory_format=torch.contiguous_format)
    return _tensor(np.array(leaf[start:stop], order="C"))


def _tensor(rows: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(rows.astype(rows.dtype.newbyteorder("="), copy=False))

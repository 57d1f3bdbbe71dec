"""`Shards`: samples in Parquet, tar and Arrow files, read block by block."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from trueloop import _options
from trueloop.errors import DataError
from trueloop.feed.shards import columnar
from trueloop.feed.shards.cache import BlockCache
from trueloop.feed.shards.columns import FixedShapeColumn, Joined
from trueloop.feed.shards.fields import Fields
from trueloop.feed.shards.index import Index, find
from trueloop.feed.shards.storage import Storage
from trueloop.feed.shards.tar import TarBlock
from trueloop.feed.windows import WindowOrder

WINDOW_BYTES = 1 << 26
"""The default size of a window, as the samples are stored: 64 MiB."""
_WINDOW_SAMPLES = 65_536
_WINDOW_BLOCKS = 32
_FEW = 4
"""With fewer blocks in a window, a warning says that samples are poorly shuffled."""


class Shards(Dataset[Any]):
    """Samples in shards: Parquet, tar (WebDataset's layout) or Arrow (IPC) files, of any sizes.

    For `Feed(Shards(...), batch_size, shuffle=True)`. Samples are numbered through all shards in
    the order of their names. An index of their places is made once, and kept beside the shards or
    in the user's folder for caches. What is read is blocks: row groups, record batches, or
    stretches of about 1 MiB of a tar file, each by its byte range.

    `shuffle=True` puts the blocks into a random order, and then the samples within each window of
    a few blocks, see `trueloop.feed.windows`. A process keeps the current window and the next one:
    `memory` bytes at most, and what is being decoded.

    A sample of a tar file is what the members of one name before the first dot have; the rest of
    the name is the field: `jpg`, `png` and other pictures become uint8 of shape (3, H, W), `cls`
    and `index` an int, `txt` a str, `json` what it says, `npy` a tensor, anything else stays
    bytes. Columns of numbers and booleans become tensors of their dtype, fixed-size lists and lists
    of numbers too; text and bytes stay. Nothing is unpickled.

    Args:
        data: a folder, a file, a glob or brace pattern (`train-{000..099}.tar`), a URL that fsspec
            knows (`s3://…`, `https://…`) of any of these, or a list of them.
        fields: the fields of a sample: a sequence of names makes it a tuple of these,
            `("jpg;png", "cls")`; a mapping makes it a dict, `{"image": "jpg", "label": "cls"}`;
            None is a dict of all. `jpg;png` is the first of these that a sample has. `__key__` is
            the name of a sample of a tar file.
        decode: for some fields a function of what is stored (bytes, or the value in a column; it
            may draw random numbers), or a name: "bytes", "image", "gray" (uint8 of shape (1, H,
            W)), "int", "text", "json", "npy".
        window: samples in a window: fewer, and one more block. None is as many as fit into 64 MiB,
            at most 65,536 or 32 of the largest blocks.
        index: the file that keeps the index.
        storage_options: for fsspec: credentials, say.
        retries: how often a range is asked for again from a server that fails, after 0.1, 0.4,
            1.6 … seconds.

    Raises:
        ConfigError: an argument has a value that cannot work, or names a field that is not there.
        DataError: a shard is not there, cannot be read, is damaged, or has changed during the
            training; the message names the file and, where there is one, the offset.
        MissingDependencyError: pyarrow, or fsspec's package for the URL, is not installed.
    """

    def __init__(
        self,
        data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        fields: Sequence[str] | Mapping[str, str] | None = None,
        decode: Mapping[str, str | Callable[[Any], Any]] | None = None,
        window: int | None = None,
        index: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        retries: int = 3,
    ) -> None:
        if storage_options is not None:
            _options.mapping("storage_options", storage_options, "{'anon': True}")
        _options.whole("retries", retries, 0, 3)
        self._storage = Storage(storage_options, retries)
        self._index = find(data, self._storage, index)
        self._fields = Fields(fields, decode, self._index)
        self._footers = columnar.Footers()
        self.samples = int(self._index.samples.sum())
        """Samples in all shards."""
        self.window = _window(self._index) if window is None else _options.whole("window", window)
        """Samples in a window, but for its last block."""
        self._has_warned = False
        self._joined: Joined | None = None
        self._window_blocks: list[int] = []
        self._cache = BlockCache(self._load, self._index.samples, self._bound())

    def _bound(self) -> int:
        """The samples of two windows."""
        return 2 * (self.window + int(self._index.samples.max(initial=0)))

    @property
    def memory(self) -> int:
        """Bytes that a process keeps at most, as the samples are stored and decompressed.

        That is two windows, and for a moment, where columns are joined, a third.
        """
        total = int(self._index.sizes.sum())
        windows = min(self._bound(), self.samples) * total // max(self.samples, 1)
        return windows if self._index.format == "tar" else windows * 3 // 2

    @property
    def draws(self) -> bool:
        """Whether functions of the user's make the samples."""
        return self._fields.draws

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_joined": None, "_window_blocks": []}

    def __repr__(self) -> str:
        return (
            f"Shards({len(self._index.files):,} {self._index.format} files, {self.samples:,} "
            f"samples in {len(self._index.samples):,} blocks, window={self.window:,}, at most "
            f"{self.memory / 1e6:.0f} MB in each process)"
        )

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Any:
        """One sample."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        return self.__getitems__([index % len(self)])[0]

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Samples by index, read block by block."""
        numbers, rows = self._places(np.asarray(indices, dtype=np.int64))
        blocks = self._cache.get(list(dict.fromkeys(numbers.tolist())))
        return [
            self._fields.sample(blocks[number], row)
            for number, row in zip(numbers.tolist(), rows.tolist(), strict=True)
        ]

    def fetch(self, indices: Sequence[int]) -> None:
        """Read the blocks of these samples, all at once.

        Args:
            indices: of the samples, in all shards.
        """
        numbers, _ = self._places(np.asarray(indices, dtype=np.int64))
        self._cache.get(list(dict.fromkeys(numbers.tolist())))

    def get_batch(self, indices: Sequence[int]) -> Any:
        """The batch of these samples, each of its columns gathered at once.

        Args:
            indices: of the samples, in all shards.

        Returns:
            A list or dict of tensors, as `default_collate` makes it of the samples; None where
        a column is not numeric.
        """
        numbers, rows = self._places(np.asarray(indices, dtype=np.int64))
        joined = self._joined_window()
        places = joined.rows(numbers, rows) if joined is not None else np.full(len(rows), -1)
        others = numbers[places < 0]
        blocks = self._cache.get(list(dict.fromkeys(others.tolist())))
        if not all(_has_numbers(block) for block in blocks.values()):
            return None
        parts = [(blocks[number].columns, numbers == number, rows) for number in blocks]
        if joined is not None:
            parts.append((joined.columns, places >= 0, places))
        known = parts[0][0]
        names = self._fields.names or {name: (name,) for name in known}
        values = {name: _gathered(parts, field) for name, (field,) in names.items()}
        return list(values.values()) if self._fields.is_tuple else values

    def _joined_window(self) -> Joined | None:
        """The columns of the window that `begin_window` named, joined when a batch first asks."""
        if self._window_blocks:
            blocks = self._cache.get(self._window_blocks)
            if len(blocks) > 1 and all(_has_numbers(block) for block in blocks.values()):
                self._joined = Joined({number: block.columns for number, block in blocks.items()})
                self._cache.drop(self._window_blocks)
            self._window_blocks = []
        return self._joined

    def _places(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The block of each sample, and its row there."""
        numbers = np.searchsorted(self._index.ends, indices, side="right")
        rows = indices - self._index.ends[numbers] + self._index.samples[numbers]
        return numbers, rows

    def begin_window(self, blocks: Sequence[int], following: Sequence[int], joined: bool) -> None:
        """Read the blocks of a window, and of the one after it, that are not in memory.

        Args:
            blocks: those of the window.
            following: those of the next window.
            joined: whether batches are asked for by `get_batch`.
        """
        self._joined = None
        self._cache.expect([*blocks, *following])
        self._window_blocks = list(blocks) if joined else []

    def order(self, seed: int, epoch: int, shuffle: bool) -> WindowOrder:
        """The order of one epoch. Warns, once, if a window of a shuffled one mixes few blocks.

        Args:
            seed: of the order.
            epoch: from 0.
            shuffle: False takes the samples as they are stored.

        Returns:
            The indices, computed as they are asked for.
        """
        order = WindowOrder(self._index.samples, self.window, seed, epoch, shuffle)
        blocks = int(np.count_nonzero(self._index.samples))
        is_poor = 2 * _FEW <= blocks < _FEW * order.windows
        if shuffle and is_poor and not self._has_warned:
            self._has_warned = True
            warnings.warn(self._poorly_mixed(blocks / order.windows), RuntimeWarning, stacklevel=6)
        return order

    def _poorly_mixed(self, blocks: float) -> str:
        largest = int(self._index.samples.max())
        window = _WINDOW_BLOCKS * largest
        size = 2 * window * int(self._index.sizes.sum()) // self.samples
        return (
            f"a window of {self.window:,} samples has {blocks:.1f} of the {self._index.format} "
            f"blocks of up to {largest:,} samples, so that neighbouring samples train together: "
            f"write blocks of at most {max(self.window // _WINDOW_BLOCKS, 1):,}, or "
            f"window={window}, which takes {size / 1e6:,.0f} MB in each process"
        )

    def digest(self) -> str:
        """Return a digest of the shards' names and sizes and of the samples in their blocks."""
        return self._index.digest()

    def _load(self, number: int) -> Any:
        index = self._index
        shard = int(index.shards[number])
        file = index.files[shard]
        start, stop = int(index.starts[number]), int(index.stops[number])
        count = int(index.samples[number])
        if index.format == "tar":
            return TarBlock(self._storage, file, start, stop, count)
        within = number - int(index.counts[:shard].sum())
        load = columnar.load_parquet if index.format == "parquet" else columnar.load_arrow
        columns, decoded = self._fields.columns, self._fields.decoded
        block = load(self._storage, self._footers, file, within, (start, stop), columns, decoded)
        if block.count != count:
            raise DataError(
                f"{block.where(0)[len('row 0 of ') :]} has {block.count} rows, where its index has "
                f"{count}: the shard has changed; start a new run"
            )
        return block


def _has_numbers(block: Any) -> bool:
    """Whether all that the block has are number columns."""
    if isinstance(block, TarBlock) or not block.columns:
        return False
    return all(isinstance(column, FixedShapeColumn) for column in block.columns.values())


def _gathered(parts: Sequence[tuple[Any, np.ndarray, np.ndarray]], field: str) -> torch.Tensor:
    """One column of a batch: each part gives its columns, which samples are its own, and the rows
    of these."""
    if len(parts) == 1:
        columns, _, rows = parts[0]
        return torch.from_numpy(columns[field].rows(rows))
    values = parts[0][0][field].values
    found = np.empty((len(parts[0][1]), *values.shape[1:]), values.dtype)
    for columns, here, rows in parts:
        found[here] = columns[field].rows(rows[here])
    return torch.from_numpy(found)


def _window(index: Index) -> int:
    """The window by default: a power of two, so that a few samples more or less do not change
    it."""
    samples = int(index.samples.sum())
    size = max(int(index.sizes.sum()) // max(samples, 1), 1)
    largest = int(index.samples.max(initial=1))
    most = min(WINDOW_BYTES // size, max(_WINDOW_SAMPLES, _WINDOW_BLOCKS * largest))
    return int(1 << max(most, 1).bit_length() - 1)

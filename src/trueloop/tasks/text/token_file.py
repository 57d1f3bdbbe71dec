"""Token ids in memory or in a memory-mapped file, gathered at any places at once."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from trueloop import files
from trueloop.errors import DataError

Ids = npt.NDArray[np.int64]

_RESIDENT = 64 * 2**20
"""Bytes of a file that stay mapped into the process: beyond, its pages go back to the system's
cache, where they stay as long as there is room."""
_FAULT = 64 * 2**10
"""What Linux maps at most around a page that is asked for."""
_PROBES = 64
_PROBE = 4096
_DTYPES = {"uint8": 1, "uint16": 2, "uint32": 4, "int32": 4, "int64": 8}


class Tokens:
    """Token ids in a row: a view of an array, or of a file's memory map, without a copy.

    `vocab_size` is given for ids of somebody else's making: each that is read is held against it.
    """

    def __init__(
        self,
        array: npt.NDArray[np.integer],
        *,
        mapped: _Mapped | None = None,
        name: str = "the tokens",
        vocab_size: int | None = None,
        first: int = 0,
    ) -> None:
        self._array = array
        self._mapped = mapped
        self._name = name
        self._vocab_size = vocab_size
        self._first = first  # of its file or array

    def __len__(self) -> int:
        return len(self._array)

    def part(self, start: int, stop: int) -> Tokens:
        """The ids from `start` to `stop` - 1."""
        return Tokens(
            self._array[start:stop],
            mapped=self._mapped,
            name=self._name,
            vocab_size=self._vocab_size,
            first=self._first + start,
        )

    def read(self, start: int, stop: int) -> Ids:
        """The ids from `start` to `stop` - 1: a new int64 array.

        Raises `DataError` for an id outside the vocabulary.
        """
        found: Ids = self.gather(np.array([start]), stop - start)[0]
        return found

    def gather(self, starts: Ids, length: int) -> Ids:
        """`length` ids from each of `starts` (int64, shape (B,)) on: a new int64 array (B,
        length).

        Raises `DataError` for an id outside the vocabulary.
        """
        windows = np.lib.stride_tricks.sliding_window_view(self._array, length)
        found = windows[starts].astype(np.int64)
        if self._mapped is not None:
            self._mapped.touched(len(starts), length * self._array.itemsize)
        if self._vocab_size is not None and found.size:
            self._check(found, starts)
        return found

    def probe(self) -> None:
        """Hold the ids at the ends, and at places in between, against the vocabulary: a file of
        another kind is refused before anything is built."""
        size = min(_PROBE, len(self))
        places = np.linspace(0, len(self) - size, _PROBES, dtype=np.int64)
        self.gather(np.unique(places), size)

    def _check(self, found: Ids, starts: Ids) -> None:
        assert self._vocab_size is not None
        if found.min() >= 0 and found.max() < self._vocab_size:
            return
        row, column = np.argwhere((found < 0) | (found >= self._vocab_size))[0]
        place = self._first + int(starts[row]) + int(column)
        raise DataError(
            f"{self._name} holds the id {found[row, column]} at position {place:,}, outside the "
            f"vocabulary of {self._vocab_size:,} ids: give the tokenizer that made the file, or "
            "check --token-dtype"
        )


class _Mapped:
    """The memory map of a file, which keeps no more than `_RESIDENT` bytes of it in the process."""

    def __init__(self, file: IO[Any]) -> None:
        self.map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._touched = 0

    def touched(self, rows: int, row_bytes: int) -> None:
        """So many rows have been read."""
        self._touched += rows * (row_bytes + _FAULT)
        if self._touched > _RESIDENT and hasattr(mmap, "MADV_DONTNEED"):
            self.map.madvise(mmap.MADV_DONTNEED)
            self._touched = 0


def open_tokens(
    path: Path, dtype: str | None = None, *, name: str | None = None, vocab_size: int | None = None
) -> Tokens:
    """The ids in the file `path`, memory-mapped: a `.npy` of one dimension, or else raw integers of
    `dtype` (one of uint8, uint16, uint32, int32, int64) in the byte order of the machine.

    Raises `DataError` for a file that cannot be read, is empty or does not hold whole ids.
    """
    name = str(path) if name is None else name
    try:
        with files.open_regular(path) as file:
            form, offset = _header(file, name) if path.suffix == ".npy" else (dtype, 0)
            assert form in _DTYPES
            size = os.fstat(file.fileno()).st_size - offset
            if size <= 0:
                raise DataError(f"{name} is empty: give a file of token ids")
            if size % _DTYPES[form]:
                raise DataError(
                    f"{name} has {size:,} bytes, not a multiple of the {_DTYPES[form]} of an id "
                    f"as {form}: check that it is complete, and --token-dtype"
                )
            mapped = _Mapped(file)
    except OSError as error:
        raise DataError(files.cannot_read(path, error)) from None
    array = np.frombuffer(mapped.map, dtype=form, offset=offset)
    return Tokens(array, mapped=mapped, name=name, vocab_size=vocab_size)


def _header(file: IO[Any], name: str) -> tuple[str, int]:
    """The dtype of a `.npy` file, and where its values begin."""
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0
        if version != (1, 0):
            read = np.lib.format.read_array_header_2_0
        shape, _, dtype = read(file)
    except ValueError as error:
        raise DataError(
            f"{name} is not a .npy file ({error}): write it with numpy.save, or name raw ids .bin"
        ) from None
    if len(shape) != 1 or dtype.name not in _DTYPES or not dtype.isnative:
        raise DataError(
            f"{name} holds {dtype.name} numbers of shape {shape}: give token ids in one "
            "dimension, e.g. numpy.save(name, ids.astype('uint16').ravel())"
        )
    return dtype.name, file.tell()


def dtype_for(vocab_size: int) -> str:
    """The smallest dtype that holds every id."""
    return "uint8" if vocab_size <= 2**8 else "uint16" if vocab_size <= 2**16 else "uint32"


def write_tokens(file: IO[Any], ids: Iterable[Ids], dtype: str) -> int:
    """Append all of `ids` to an open file as raw integers; how many there were."""
    count = 0
    for each in ids:
        file.write(each.astype(dtype).tobytes())
        count += len(each)
    return count

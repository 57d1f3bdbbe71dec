"""Token ids in memory or in a file, gathered at any places at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from trueloop import files
from trueloop.errors import DataError

Ids = npt.NDArray[np.int64]

_PROBES = 64
_PROBE = 4096
_DTYPES = {"uint8": 1, "uint16": 2, "uint32": 4, "int32": 4, "int64": 8}


class IdFile:
    """The ids in an open file, of which only what is asked for is read.

    Not a memory map: one read for each row takes as long as the page faults of a map, and the pages
    stay the system's, so that a file of any size adds nothing to the process; where the file
    becomes shorter or the disk fails, an error is raised, and no signal ends the process.
    """

    def __init__(self, file: IO[bytes], dtype: str, offset: int, name: str) -> None:
        self.dtype = np.dtype(dtype)
        self.name = name
        self._file = file  # closed with this object
        self._offset = offset
        self._lock = threading.Lock()

    def rows(self, starts: Ids, length: int) -> npt.NDArray[np.integer]:
        """`length` ids from each of `starts` on, (B, length)."""
        size = length * self.dtype.itemsize
        places = (self._offset + starts * self.dtype.itemsize).tolist()
        try:
            found = b"".join([self._read(size, place) for place in places])
        except OSError as error:
            raise DataError(files.cannot_read(self.name, error)) from None
        if len(found) != size * len(places):
            raise DataError(
                f"{self.name} has become shorter since the run began: restore the file, and resume"
            )
        return np.frombuffer(found, self.dtype).reshape(len(places), length)

    def _read(self, size: int, place: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), size, place)
        with self._lock:  # Windows
            self._file.seek(place)
            return self._file.read(size)


class Tokens:
    """Token ids in a row: a part of an array or of a file, without a copy.

    `vocab_size` is given for ids from outside: each one is checked against it when it is read.
    """

    def __init__(
        self,
        source: npt.NDArray[np.integer] | IdFile,
        *,
        first: int = 0,
        count: int | None = None,
        vocab_size: int | None = None,
    ) -> None:
        self._source = source
        self._first = first
        if count is None:
            assert not isinstance(source, IdFile)
            count = len(source) - first
        self._count = count
        self._vocab_size = vocab_size

    def __len__(self) -> int:
        return self._count

    def part(self, start: int, stop: int) -> Tokens:
        """The ids from `start` to `stop` - 1."""
        return Tokens(
            self._source,
            first=self._first + start,
            count=stop - start,
            vocab_size=self._vocab_size,
        )

    def read(self, start: int, stop: int) -> Ids:
        """The ids from `start` to `stop` - 1: a new int64 array. Raises what `gather` raises."""
        found: Ids = self.gather(np.array([start]), stop - start)[0]
        return found

    def gather(self, starts: Ids, length: int) -> Ids:
        """`length` ids from each of `starts` (int64, shape (B,)) on: a new int64 array (B,
        length).

        Raises `DataError` for an id outside the vocabulary, and for a file that cannot be read or
        has become shorter.
        """
        starts = starts + self._first
        if isinstance(self._source, IdFile):
            found = self._source.rows(starts, length).astype(np.int64)
        else:
            windows = np.lib.stride_tricks.sliding_window_view(self._source, length)
            found = windows[starts].astype(np.int64)
        if self._vocab_size is not None and found.size:
            self._check(found, starts)
        return found

    def probe(self) -> None:
        """Hold the ids at the ends, and at places in between, against the vocabulary: a file with
        different contents is refused before anything is built."""
        size = min(_PROBE, len(self))
        places = np.linspace(0, len(self) - size, _PROBES, dtype=np.int64)
        self.gather(np.unique(places), size)

    def _check(self, found: Ids, starts: Ids) -> None:
        assert self._vocab_size is not None
        if found.min() >= 0 and found.max() < self._vocab_size:
            return
        row, column = np.argwhere((found < 0) | (found >= self._vocab_size))[0]
        name = self._source.name if isinstance(self._source, IdFile) else "the array"
        raise DataError(
            f"{name} contains the id {found[row, column]} at position "
            f"{int(starts[row]) + int(column):,}, outside the vocabulary of "
            f"{self._vocab_size:,} ids: use the tokenizer of the file, or check --token-dtype"
        )


def open_tokens(
    path: Path, dtype: str | None = None, *, name: str | None = None, vocab_size: int | None = None
) -> Tokens:
    """The ids in the file `path`: a `.npy` of one dimension, or else raw integers of `dtype` (one
    of uint8, uint16, uint32, int32, int64) in the byte order of the machine. Messages call it
    `name`.

    Raises `DataError` for a file that cannot be read, is empty or does not consist of whole ids.
    """
    name = str(path) if name is None else name
    try:
        file = files.open_regular(path, buffering=0)
        form, offset = _header(file, name) if path.suffix == ".npy" else (dtype, 0)
        size = os.fstat(file.fileno()).st_size - offset
    except OSError as error:
        raise DataError(files.cannot_read(path, error)) from None
    assert form in _DTYPES
    if size <= 0:
        raise DataError(f"{name} is empty: give a file of token ids")
    if size % _DTYPES[form]:
        raise DataError(
            f"{name} has {size:,} bytes, not a multiple of the {_DTYPES[form]} of an id as "
            f"{form}: check that it is complete, and --token-dtype"
        )
    source = IdFile(file, form, offset, name)
    return Tokens(source, count=size // _DTYPES[form], vocab_size=vocab_size)


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
            f"{name} has {dtype.name} numbers of shape {shape}: give token ids in one "
            "dimension, e.g. numpy.save(name, ids.astype('uint16').ravel())"
        )
    return dtype.name, file.tell()


def dtype_for(vocab_size: int) -> str:
    """The smallest dtype for every id."""
    return "uint8" if vocab_size <= 2**8 else "uint16" if vocab_size <= 2**16 else "uint32"


def write_tokens(file: IO[Any], ids: Iterable[Ids], dtype: str) -> int:
    """Append all of `ids` to an open file as raw integers; how many there were."""
    count = 0
    for each in ids:
        file.write(each.astype(dtype).tobytes())
        count += len(each)
    return count

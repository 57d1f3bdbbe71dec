"""The row groups of a Parquet file, by its footer: how many rows each has, and of how many bytes.

The footer is a struct of Thrift's compact protocol, of which only this is read; the layout is that
of parquet.thrift in https://github.com/apache/parquet-format. polars reads row groups, and does
not say where they are.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueloop.errors import DataError
from trueloop.files import cannot_read, open_regular

_MAGIC = b"PAR1"
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    0, 1, 2, 3, 7, 8, 9, 10, 11, 12,
)  # fmt: skip
_VARINTS = (4, 5, 6)
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file."""

    rows: int
    size: int
    """Bytes of all its columns, before compression."""


@dataclass(frozen=True)
class Footer:
    """The contents of a Parquet file's footer."""

    row_groups: list[RowGroup]
    content: bytes
    """The whole footer: it differs for different data, through its statistics and positions."""


def read_footer(path: Path) -> Footer:
    """The footer of the Parquet file at `path`. Raises `DataError`."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:
                raise DataError(f"{path} is empty: write it again")
            file.seek(max(0, size - 8))
            end = file.read(8)
            length = int.from_bytes(end[:4], "little")
            if len(end) < 8 or end[4:] != _MAGIC or not 0 < length <= min(size - 8, _MOST_BYTES):
                raise DataError(f"{path} is broken Parquet (no footer at its end): write it again")
            file.seek(size - 8 - length)
            content = file.read(length)
    except OSError as error:
        raise DataError(cannot_read(path, error)) from None
    try:
        fields = _Compact(content).struct({4: {2: {}, 3: {}}})
        groups = [RowGroup(group[3], group[2]) for group in fields.get(4, [])]
    except (IndexError, KeyError, TypeError, struct.error) as error:
        reason = f"a footer that cannot be read: {type(error).__name__}"
        raise DataError(f"{path} is broken Parquet ({reason}): write it again") from None
    return Footer([group for group in groups if group.rows], content)


class _Compact:
    """A reader of Thrift's compact protocol."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0

    def struct(self, wanted: dict[int, Any] | None) -> dict[int, Any]:
        """The fields of a struct by their numbers: those in `wanted`, with what is wanted in turn
        of a struct or list of structs there; the others are passed over."""
        found: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != _STOP:
            kind, step = head & 0x0F, head >> 4
            number = number + step if step else self._zigzag()
            inner = None if wanted is None else wanted.get(number)
            if inner is None:
                self._skip(kind)
            elif kind in _VARINTS:
                found[number] = self._zigzag()
            elif kind == _LIST:
                found[number] = [self.struct(inner) for _ in range(self._list_head()[1])]
            else:
                raise TypeError(kind)
        return found

    def _skip(self, kind: int) -> None:
        if kind in _VARINTS:
            self._varint()
        elif kind == _BINARY:
            self._advance(self._varint())
        elif kind == _STRUCT:
            self.struct(None)
        elif kind in (_LIST, _SET):
            inner, count = self._list_head()
            for _ in range(count):
                self._skip_element(inner)
        elif kind == _MAP:
            if count := self._varint():
                kinds = self._byte()
                for _ in range(count):
                    self._skip_element(kinds >> 4)
                    self._skip_element(kinds & 0x0F)
        elif kind == _DOUBLE:
            self._advance(8)
        elif kind == _BYTE:
            self._advance(1)
        elif kind not in (_TRUE, _FALSE):
            raise TypeError(kind)

    def _skip_element(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):  # within a list, a boolean is a byte
            self._advance(1)
        else:
            self._skip(kind)

    def _list_head(self) -> tuple[int, int]:
        """The content of a list, and its length."""
        head = self._byte()
        count = head >> 4
        return head & 0x0F, self._varint() if count == 15 else count

    def _byte(self) -> int:
        self._place += 1
        return self._content[self._place - 1]

    def _varint(self) -> int:
        found = shift = 0
        while True:
            byte = self._byte()
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
            shift += 7

    def _zigzag(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)

    def _advance(self, count: int) -> None:
        self._place += count
        if self._place > len(self._content):
            raise IndexError

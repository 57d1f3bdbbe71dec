"""Parquet and Arrow files: their row groups and record batches, read by byte range."""

from __future__ import annotations

import io
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from trueloop.errors import DataError, MissingDependencyError, UserError
from trueloop.feed.shards.blocks import Blocks
from trueloop.feed.shards.columns import Column, column
from trueloop.feed.shards.storage import File, Storage

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
_TAIL = 1 << 16
_KEPT = 64
"""Footers that a process keeps."""
_ARROW_MAGIC = b"ARROW1"


class RangeFile(io.RawIOBase):
    """A file that is read by ranges; one range of it is in memory from the start."""

    def __init__(self, storage: Storage, file: File, start: int = 0, stop: int = 0) -> None:
        self._storage, self._file, self._at = storage, file, 0
        self._ranges: list[tuple[int, bytes]] = []
        if stop > start:
            self.preload(start, stop)

    def preload(self, start: int, stop: int) -> None:
        """Read these bytes now, in one request."""
        self._ranges.append((start, self._storage.read(self._file, start, stop)))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._file.size)[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        start = self._at
        left = max(self._file.size - start, 0)
        stop = start + (left if size is None or size < 0 else min(size, left))
        self._at = stop
        for first, content in self._ranges:
            if first <= start and stop <= first + len(content):
                return content[start - first : stop - first]
        return self._storage.read(self._file, start, stop)


class ColumnBlock:
    """The rows of one block, by column."""

    def __init__(self, columns: dict[str, Column], where: str, count: int) -> None:
        self.columns = columns
        self.count = count
        self._where = where

    def fields(self, row: int) -> list[str]:
        """The columns."""
        return list(self.columns)

    def raw(self, row: int, field: str) -> Any:
        """The value in one row of a column."""
        return self.columns[field][row]

    def where(self, row: int) -> str:
        """The sample `row` in words."""
        return f"row {row} of {self._where}"


class Footers:
    """The footers that were read last, which blocks of one shard share."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Any] = OrderedDict()

    def __reduce__(self) -> tuple[type[Footers], tuple[()]]:
        return Footers, ()  # another process reads its own: threads may change these meanwhile

    def of(self, file: File, read: Callable[[], Any]) -> Any:
        """That of `file`."""
        found = self._kept.get(file.path)
        if found is None:
            found = self._kept[file.path] = read()
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def examine_parquet(storage: Storage, file: File) -> Blocks:
    """The row groups of a shard: reads only its footer."""
    with _Reading(file):
        source = _with_tail(storage, file)
        parquet = _parquet().ParquetFile(source)
        found, metadata = Blocks(), parquet.metadata
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            chunks = [group.column(column) for column in range(group.num_columns)]
            starts = [
                min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
                for chunk in chunks
            ]
            ends = [
                start + chunk.total_compressed_size
                for start, chunk in zip(starts, chunks, strict=True)
            ]
            found.add(group.num_rows, min(starts), max(ends), group.total_byte_size)
        schema = parquet.schema_arrow
        found.fields = {each.name: str(each.type) for each in schema}
        return found


def load_parquet(
    storage: Storage,
    footers: Footers,
    file: File,
    number: int,
    span: tuple[int, int],
    fields: Sequence[str] | None,
    decoded: Sequence[str],
) -> ColumnBlock:
    """The row group `number`, which is at `span`: one request for all columns, or one for each of
    `fields`."""
    with _Reading(file):
        parquet = _parquet()

        def footer() -> Any:
            return parquet.ParquetFile(_with_tail(storage, file)).metadata

        source = RangeFile(storage, file, *(span if fields is None else (0, 0)))
        opened = parquet.ParquetFile(source, metadata=footers.of(file, footer))
        table = opened.read_row_group(number, columns=fields, use_threads=False)
        return _block(table, f"row group {number} of {file.path}", decoded)


def examine_arrow(storage: Storage, file: File) -> Blocks:
    """The record batches of a shard: reads its footer, and of each batch what says its length."""
    with _Reading(file):
        if storage.read(file, 0, min(6, file.size)) != _ARROW_MAGIC:
            raise DataError(
                f"the shard {file.path} is not an Arrow file, perhaps a stream of one: write it "
                "with pyarrow.ipc.new_file"
            )
        found = Blocks()
        for start, length, body in _record_batches(storage, file):
            head = storage.read(file, start, start + length)
            found.add(_rows(head), start, start + length + body, body)
        with _ipc().open_file(_with_tail(storage, file)) as reader:
            found.fields = {each.name: str(each.type) for each in reader.schema}
        return found


def load_arrow(
    storage: Storage,
    footers: Footers,
    file: File,
    number: int,
    span: tuple[int, int],
    fields: Sequence[str] | None,
    decoded: Sequence[str],
) -> ColumnBlock:
    """The record batch `number`, which is at `span`."""
    with _Reading(file):
        source: RangeFile = footers.of(file, lambda: _with_tail(storage, file))
        view = RangeFile(storage, file, *span)
        view._ranges.extend(source._ranges)
        with _ipc().open_file(view) as reader:
            batch = reader.get_batch(number)
        if fields is not None:
            batch = batch.select(list(fields))
        return _block(batch, f"record batch {number} of {file.path}", decoded)


def _block(table: Any, where: str, decoded: Sequence[str]) -> ColumnBlock:
    columns = {
        name: column(values, name, where, name in decoded)
        for name, values in zip(table.column_names, table.columns, strict=True)
    }
    return ColumnBlock(columns, where, table.num_rows)


def _with_tail(storage: Storage, file: File) -> RangeFile:
    """The file, with the end of it in memory, where both formats have their footers."""
    return RangeFile(storage, file, max(file.size - _TAIL, 0), file.size)


class _Reading:
    """Turns what Arrow says of a file into one line that names it."""

    def __init__(self, file: File) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, UserError) or not isinstance(error, Exception):
            return
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"the shard {self._file.path} cannot be read ({type(error).__name__}: {reason}): "
            "write it again, or leave it out"
        ) from error


def _record_batches(storage: Storage, file: File) -> list[tuple[int, int, int]]:
    """Offset, length of the metadata and of the body of each record batch, by the footer: a
    flatbuffer before its own length (4 bytes) and the magic (6), see Arrow's columnar format."""
    length, magic = struct.unpack("<i6s", storage.read(file, file.size - 10, file.size))
    if magic != _ARROW_MAGIC:
        raise ValueError("it has no footer, so that it was not written to its end")
    footer = storage.read(file, file.size - 10 - length, file.size - 10)
    at = _field(footer, _root(footer), 3)
    if at is None:
        return []
    at += struct.unpack_from("<I", footer, at)[0]
    (count,) = struct.unpack_from("<I", footer, at)
    return [struct.unpack_from("<qi4xq", footer, at + 4 + 24 * k) for k in range(count)]


def _rows(message: bytes) -> int:
    """The length of a record batch, by its message: a flatbuffer after two words of 4 bytes."""
    at = 8 if message[:4] == b"\xff\xff\xff\xff" else 4
    buffer = message[at:]
    header = _field(buffer, _root(buffer), 2)
    assert header is not None
    length = _field(buffer, header + struct.unpack_from("<I", buffer, header)[0], 0)
    return 0 if length is None else int(struct.unpack_from("<q", buffer, length)[0])


def _root(buffer: bytes) -> int:
    return int(struct.unpack_from("<I", buffer)[0])


def _field(buffer: bytes, table: int, number: int) -> int | None:
    """Where field `number` of a flatbuffer's table is; None if it has its default."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    place = 4 + 2 * number
    if place >= struct.unpack_from("<H", buffer, vtable)[0]:
        return None
    (offset,) = struct.unpack_from("<H", buffer, vtable + place)
    return table + int(offset) if offset else None


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise _missing(error) from None
    return pyarrow.parquet


def _ipc() -> Any:
    try:
        import pyarrow.ipc
    except ImportError as error:
        raise _missing(error) from None
    return pyarrow.ipc


def _missing(error: ImportError) -> MissingDependencyError:
    return MissingDependencyError(
        f"Parquet and Arrow shards need pyarrow ({error}): type pip install 'trueloop[shards]'"
    )

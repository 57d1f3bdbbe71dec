"""Samples of a tar file in WebDataset's layout: members in a row that have one name before the
first dot are one sample, and what follows the dot, in lower case, names the field.

The headers are those of POSIX.1-2001 (ustar and pax) and GNU tar, as `tarfile` reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field as dataclass_field
from typing import NamedTuple

from trueloop.errors import DataError
from trueloop.feed.shards.blocks import Blocks
from trueloop.feed.shards.storage import File, Storage

Read = Callable[[int, int], bytes]
"""The bytes from one offset of the file up to a second one, fewer at its end."""

SUFFIXES = (".tar",)
BLOCK_BYTES = 1 << 20
"""A block ends with the sample that reaches this size: what one request reads."""
BLOCK_SAMPLES = 4096
KEY = "__key__"
_RECORD = 512
_READ_AHEAD = 1 << 18
_REGULAR = b"0\x007"
_NOTHING = bytes(_RECORD)


class Member(NamedTuple):
    """A regular file in the archive, or the end of what was walked through."""

    name: str
    start: int
    """Offset of its first header."""
    offset: int
    """Offset of its content."""
    size: int


@dataclass
class TarSample:
    """Members that belong together, by field: offset and size of each."""

    key: str
    start: int
    fields: dict[str, tuple[int, int]] = dataclass_field(default_factory=dict)


class _Damage(Exception):  # noqa: N818 - never seen outside
    """The fault at an offset."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset


def examine(storage: Storage, file: File) -> Blocks:
    """The blocks of a shard: reads its headers, and no more of the content than is between them."""
    found = Blocks()
    samples, start = 0, 0
    fields: dict[str, int] = {}
    for sample in _samples(file, _buffered(storage, file), 0, file.size):
        full = sample.start - start >= BLOCK_BYTES or samples == BLOCK_SAMPLES
        if samples and full:
            found.add(samples, start, sample.start)
            samples = 0
        start = start if samples else sample.start
        samples += 1
        for name in sample.fields:
            fields[name] = fields.get(name, 0) + 1
        stop = max(offset + size for offset, size in sample.fields.values())
    if samples:
        found.add(samples, start, -(-stop // _RECORD) * _RECORD)
    found.fields = dict.fromkeys(fields, "bytes")
    total = sum(found.samples)
    found.missing = {name: total - count for name, count in fields.items() if count < total}
    return found


class TarBlock:
    """The samples of one block, in memory as they are in the file."""

    def __init__(self, storage: Storage, file: File, start: int, stop: int, samples: int) -> None:
        content = storage.read(file, start, min(stop, file.size))

        def read(first: int, last: int) -> bytes:
            return content[first - start : last - start]

        self._read = read
        self._file = file
        self._samples = list(_samples(file, read, start, stop))
        self.count = samples
        if len(self._samples) != samples:
            raise DataError(
                f"the shard {file.path} has {len(self._samples)} samples from byte {start} on, "
                f"where its index has {samples}: it has changed; start a new run"
            )

    def raw(self, row: int, field: str) -> bytes | str | None:
        """A field of the sample `row` as it is in the file; None if it has none."""
        sample = self._samples[row]
        if field == KEY:
            return sample.key
        place = sample.fields.get(field)
        return None if place is None else self._read(place[0], sum(place))

    def fields(self, row: int) -> list[str]:
        """The fields of the sample `row`, in the order of the file."""
        return list(self._samples[row].fields)

    def where(self, row: int) -> str:
        """The sample `row` in words."""
        sample = self._samples[row]
        return f"{sample.key!r} at byte {sample.start} of {self._file.path}"


def _samples(file: File, read: Read, start: int, stop: int) -> Iterator[TarSample]:
    """The samples whose headers are between two offsets; `DataError` where the file is damaged."""
    current: TarSample | None = None
    try:
        for member in _members(read, start, stop):
            key, field = _split(member.name)
            if not field:
                continue
            if member.offset + member.size > file.size:
                raise _Damage(member.start, f"it ends inside {member.name!r}")
            if current is None or key != current.key:
                if current is not None:
                    yield current
                current = TarSample(key, member.start)
            if field in current.fields:
                raise _Damage(member.start, f"{member.name!r} is there twice")
            current.fields[field] = (member.offset, member.size)
    except _Damage as damage:
        raise DataError(
            f"the shard {file.path} is damaged at byte {damage.offset} ({damage}): write it again, "
            "or leave it out"
        ) from None
    if current is not None:
        yield current


def _split(name: str) -> tuple[str, str]:
    """Key and field of a member: `a/b.seg.png` is the field `seg.png` of `a/b`."""
    folder, slash, base = name.rpartition("/")
    stem, _, field = base.partition(".")
    return (folder + slash + stem, field.lower()) if stem else ("", "")


def _members(read: Read, start: int, stop: int) -> Iterator[Member]:
    """The regular members whose headers are between two offsets."""
    at, first = start, start
    long_name: str | None = None
    pax_size: int | None = None
    while at < stop:
        header = read(at, at + _RECORD)
        if header == _NOTHING:
            return  # the end of the archive
        size, kind = _header(header, at)
        content = at + _RECORD
        if kind == b"x":
            found = _pax(read(content, content + size), content)
            long_name = found.get("path", long_name)
            pax_size = int(found["size"]) if found.get("size", "").isdecimal() else pax_size
        elif kind == b"L":
            long_name = _text(read(content, content + size))
        if kind in b"xgLK":
            at = content + _padded(size)
            continue
        if pax_size is not None:
            size = pax_size
        if kind in _REGULAR:
            yield Member(long_name or _name(header), first, content, size)
        elif kind == b"S":
            raise _Damage(at, f"{_name(header)!r} is a sparse file, which does not store its bytes")
        else:
            size = 0 if kind in b"123456" else size
        at = first = content + _padded(size)
        long_name, pax_size = None, None


def _header(header: bytes, at: int) -> tuple[int, bytes]:
    """Size and type of a member."""
    if len(header) < _RECORD:
        raise _Damage(at, "it ends inside a header")
    try:
        expected = int(header[148:156].strip(b" \x00") or b"0", 8)
        size = _number(header[124:136])
    except ValueError:
        raise _Damage(at, "no tar header is here") from None
    # The sum of all bytes, those of the sum itself taken for spaces.
    if expected != sum(header) - sum(header[148:156]) + 8 * 32:
        raise _Damage(at, "a tar header has the wrong checksum")
    return size, header[156:157]


def _number(field: bytes) -> int:
    """In octal, or GNU's way: the first byte is 128, and a large number follows."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    return int(field.strip(b" \x00") or b"0", 8)


def _name(header: bytes) -> str:
    name = _text(header[:100])
    if header[257:263] == b"ustar\x00" and header[345]:
        return f"{_text(header[345:500])}/{name}"
    return name


def _text(field: bytes) -> str:
    return field.partition(b"\x00")[0].decode("utf-8", "surrogateescape")


def _pax(content: bytes, at: int) -> dict[str, str]:
    """The records `LENGTH KEY=VALUE` and a line feed, of an extended header."""
    found = {}
    place = 0
    while place < len(content) and content[place]:
        length, _, _ = content[place:].partition(b" ")
        if not length.isdigit() or not int(length):
            raise _Damage(at + place, "an extended header cannot be read")
        record = content[place : place + int(length)]
        key, _, value = record.partition(b" ")[2].removesuffix(b"\n").partition(b"=")
        found[_text(key)] = value.decode("utf-8", "surrogateescape")
        place += int(length)
    if any(key.startswith("GNU.sparse") for key in found):
        raise _Damage(at, "it has a sparse file, which does not store its bytes")
    return found


def _padded(size: int) -> int:
    return -(-size // _RECORD) * _RECORD


def _buffered(storage: Storage, file: File) -> Read:
    """Reads ahead, so that headers close to each other come in one request."""
    first, content = 0, b""

    def read(start: int, stop: int) -> bytes:
        nonlocal first, content
        stop = min(stop, file.size)
        if start >= stop:
            return b""
        if start < first or stop > first + len(content):
            first = start
            content = storage.read(file, start, min(max(stop, start + _READ_AHEAD), file.size))
        return content[start - first : stop - first]

    return read

"""Which files a text is made of, and which part of it trains, validates and tests."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from trueloop import files
from trueloop.errors import DataError, nearest_path
from trueloop.names import printable
from trueloop.tasks.images.image_folder import natural

PARTS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
TOKEN_FILES = (".bin", ".npy")
# Not every ending: train.py and test.py are programs.
_PART_FILES = (*TOKEN_FILES, ".txt", "")
_BLOCK = 1 << 20
_LOOK = 1 << 16
_SAMPLED = 256
"""Number of blocks of `_LOOK` bytes that are compared in a longer text."""


@dataclass(frozen=True)
class Span:
    """Bytes `start` to `stop` - 1 of a file: a document, or several with a separator."""

    path: Path
    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass
class TextParts:
    """The files of a text, by part; all in `train` where nothing divides them yet."""

    parts: dict[str, list[Span]]
    are_tokens: bool = False
    ignored: int = 0
    """Files of a folder that are not text."""
    tokenizer: Path | None = None
    """A `tokenizer.json` beside token files."""

    spans: list[Span] = field(init=False)

    def __post_init__(self) -> None:
        self.spans = [span for part in self.parts.values() for span in part]

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(span.size for span in self.spans)


def find(path: Path) -> TextParts:
    """The text or the token files at `path`.

    A file is the whole text. A folder with `train` and `val` (or `test`) in it, as folders or files
    (.txt, .bin, .npy), is divided by them. Of any other folder each regular file that is text, at
    any depth, is a document, in the order of the names; hidden files are skipped. Files named .bin
    and .npy are token ids.

    Raises `DataError` where nothing is to be read.
    """
    if kind := files.special_kind(path):
        raise DataError(f"{path} is {kind}: give a text file, or a folder of them")
    if not path.exists():
        raise DataError(f"no file or folder {path}: {nearest_path(path, 'check the path')}")
    if not path.is_dir():
        return TextParts({"train": [_whole(path)]}, are_tokens=path.suffix in TOKEN_FILES)
    by_part = _parts_of(path)
    if not by_part:
        spans, ignored = _texts_below(path)
        return TextParts({"train": spans}, ignored=ignored)
    tokens = [entry.suffix in TOKEN_FILES for entry in by_part.values()]
    if any(tokens) and not all(tokens):
        raise DataError(
            f"{path} has both text and token ids as its parts ("
            f"{', '.join(entry.name for entry in by_part.values())}): keep those of one kind"
        )
    if any(tokens):
        beside = path / "tokenizer.json"
        return TextParts(
            {part: [_whole(entry)] for part, entry in by_part.items()},
            are_tokens=True,
            tokenizer=beside if beside.is_file() else None,
        )
    parts, ignored = {}, 0
    for part, entry in by_part.items():
        if entry.is_dir():
            parts[part], more = _texts_below(entry)
            ignored += more
        else:
            parts[part] = [_whole(entry)]
    return TextParts(parts, ignored=ignored)


def cut(spans: Sequence[Span], position: int, separator: bytes | None) -> list[list[Span]]:
    """The spans before and after the byte `position`, or a place near it between two documents.

    Where files, or documents in a file (with a `separator`), are so long that the second side would
    get less than half or more than three times what it was to get, or the first less than half, a
    document is cut, between two characters.
    """
    total = sum(span.size for span in spans)
    least = max(position // 2, position - 2 * (total - position))
    most = position + (total - position) // 2
    ends = [sum(span.size for span in spans[: k + 1]) for k in range(len(spans) - 1)]
    near = [k for k, end in enumerate(ends) if least <= end <= most]
    if near:
        k = min(near, key=lambda k: abs(ends[k] - position))
        return [list(spans[: k + 1]), list(spans[k + 1 :])]
    k, start = 0, 0
    while k < len(spans) - 1 and start + spans[k].size <= position:
        start += spans[k].size
        k += 1
    span = spans[k]
    shift = span.start - start
    limits = max(least + shift, span.start), min(most + shift, span.stop)
    place = _place_within(span, position + shift, limits, separator)
    left, right = Span(span.path, span.start, place), Span(span.path, place, span.stop)
    return [
        [*spans[:k], *([left] if left.size else [])],
        [*([right] if right.size else []), *spans[k + 1 :]],
    ]


def digest(spans: Sequence[Span], root: Path) -> str:
    """A digest of the files' names below `root`, sizes and bytes; of more than 16 MiB, of 256
    evenly spaced blocks of 64 KiB, since reading terabytes at each start would take hours."""
    total = sum(span.size for span in spans)
    found = hashlib.sha256()
    for span in spans:
        found.update(os.fsencode(os.path.relpath(span.path, root)))
        found.update(b"\0%d %d\0" % (span.start, span.stop))
    if total <= _SAMPLED * _LOOK:
        places = [(span, span.start, span.size) for span in spans]
    else:
        places = list(_sampled(spans, total))
    for span, start, size in places:
        try:
            with files.open_regular(span.path) as file:
                file.seek(start)
                found.update(file.read(size))
        except OSError as error:
            raise DataError(files.cannot_read(span.path, error)) from None
    return found.hexdigest()


def _sampled(spans: Sequence[Span], total: int) -> list[tuple[Span, int, int]]:
    places = []
    coming = iter(spans)
    span, before = next(coming), 0
    for number in range(_SAMPLED):
        position = (total - _LOOK) * number // (_SAMPLED - 1)
        while position >= before + span.size:
            before += span.size
            span = next(coming)
        start = span.start + position - before
        places.append((span, start, min(_LOOK, span.stop - start)))
    return places


def _whole(path: Path) -> Span:
    try:
        with files.open_regular(path) as file:
            return Span(path, 0, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise DataError(files.cannot_read(path, error)) from None


def _parts_of(folder: Path) -> dict[str, Path]:
    """The entries called train, val and test; none unless there is a first and a further one."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(files.cannot_read(folder, error)) from None
    found: dict[str, Path] = {}
    for entry in entries:
        if entry.is_file():
            name = entry.stem.lower() if entry.suffix in _PART_FILES else ""
        else:
            name = entry.name.lower() if entry.is_dir() else ""
        part = next((part for part, names in PARTS.items() if name in names), None)
        if part is None:
            continue
        if part in found:
            raise DataError(
                f"{found[part]} and {entry} are both the {part} part: keep one of them in {folder}"
            )
        found[part] = entry
    if "train" in found and (len(found) > 1 or found["train"].suffix in TOKEN_FILES):
        return found
    return {}


def _texts_below(folder: Path) -> tuple[list[Span], int]:
    """The text files at any depth, in the order of their names, and how many others there are."""
    found, ignored = [], 0
    for parent, folders, names in os.walk(folder, onerror=_cannot_list):
        folders[:] = sorted((name for name in folders if name[0] != "."), key=natural)
        for name in sorted(names, key=natural):
            path = Path(parent, name)
            if name[0] == ".":
                continue
            if path.is_file() and not _looks_binary(path):
                found.append(_whole(path))
            else:
                ignored += 1
    found = [span for span in found if span.size]
    if not found:
        what = f", and {ignored} of other kinds" if ignored else ""
        raise DataError(
            f"{printable(str(folder))} contains no text file{what}: give a text file, or a folder "
            "with text files"
        )
    return found, ignored


def _cannot_list(error: OSError) -> None:
    raise DataError(files.cannot_read(error.filename, error)) from None


def _looks_binary(path: Path) -> bool:
    try:
        with files.open_regular(path) as file:
            return b"\0" in file.read(_LOOK)
    except OSError as error:
        raise DataError(files.cannot_read(path, error)) from None


def _place_within(
    span: Span, position: int, limits: tuple[int, int], separator: bytes | None
) -> int:
    """Where to cut a file: after a separator within the limits, the next one or else the one
    before; or between two characters."""
    with files.open_regular(span.path) as file:
        if separator:
            # A separator that ends just there may begin before.
            first = max(limits[0] - len(separator), span.start)
            place = _separator_after(
                file, max(position - len(separator), first), limits[1], separator
            )
            place = place or _separator_before(file, position, first, separator)
            if place is not None:
                return place
        file.seek(position)
        ahead: bytes = file.read(4)
    # A byte 10xxxxxx goes on with a character.
    inside = next((k for k, byte in enumerate(ahead) if byte & 0xC0 != 0x80), len(ahead))
    return min(position + inside, span.stop)


def _separator_after(file: IO[bytes], start: int, stop: int, separator: bytes) -> int | None:
    """The end of the first separator that begins from `start` on and ends by `stop`."""
    while start < stop:
        file.seek(start)
        block = file.read(min(_BLOCK, stop - start))
        at = block.find(separator)
        if at >= 0:
            return start + at + len(separator)
        start += max(len(block) - len(separator) + 1, 1)
    return None


def _separator_before(file: IO[bytes], stop: int, start: int, separator: bytes) -> int | None:
    """The end of the last separator between `start` and `stop`."""
    while stop > start:
        begin = max(stop - _BLOCK, start)
        file.seek(begin)
        at = file.read(stop - begin).rfind(separator)
        if at >= 0:
            return begin + at + len(separator)
        stop = begin + len(separator) - 1 if begin > start else start
    return None

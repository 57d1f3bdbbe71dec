"""UTF-8 files as pieces of text, document by document, in constant memory."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from trueloop import files
from trueloop.errors import DataError
from trueloop.names import printable
from trueloop.tasks.text.spans import Span

_READ = 1 << 20
_BOM = "\ufeff"
Advance = Callable[[int], object]


@dataclass(frozen=True)
class TextPiece:
    """Some text of a document."""

    text: str
    path: Path
    ends: bool
    """Whether it is the last of its document."""


def documents(
    spans: Iterable[Span], separator: str | None, advance: Advance = lambda size: None
) -> Iterator[TextPiece]:
    """The documents of `spans` in pieces of about a million characters: each span is one, or each
    text between the separators in it. Blank documents are skipped.

    `advance` is called with the bytes of each block that has been read. Raises `DataError` for a
    file that cannot be read, is not UTF-8 or has a NUL byte.
    """
    for span in spans:
        held, begun = "", False
        for text in _decoded(span, advance):
            *whole, held = (held + text).split(separator) if separator else [held + text]
            for each in whole:
                if begun or not _is_blank(each):
                    yield TextPiece(each, span.path, ends=True)
                begun = False
            # What may be the start of a separator waits for the rest of it.
            sure = len(held) - len(separator or "") + 1
            if sure >= _READ // 4 and not _is_blank(held[:sure]):
                yield TextPiece(held[:sure], span.path, ends=False)
                held, begun = held[sure:], True
        if begun or not _is_blank(held):
            yield TextPiece(held, span.path, ends=True)


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _decoded(span: Span, advance: Advance) -> Iterator[str]:
    """The text of a span, block by block; a byte order mark at a file's start is skipped."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with files.open_regular(span.path) as file:
            file.seek(span.start)
            position = span.start
            while position < span.stop:
                block = file.read(min(_READ, span.stop - position))
                if not block:
                    raise DataError(
                        f"{printable(str(span.path))} has become shorter while it was read: start "
                        "again when it is complete"
                    )
                text = _text_of(decoder, block, position, span)
                if position == 0:
                    text = text.removeprefix(_BOM)
                position += len(block)
                advance(len(block))
                yield text
    except OSError as error:
        raise DataError(files.cannot_read(span.path, error)) from None


def _text_of(decoder: codecs.IncrementalDecoder, block: bytes, position: int, span: Span) -> str:
    name = printable(str(span.path))
    begun = len(decoder.getstate()[0])
    try:
        text = decoder.decode(block, final=position + len(block) == span.stop)
    except UnicodeDecodeError as error:
        place = position - begun + error.start
        if position == 0 and block[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            raise DataError(
                f"{name} is UTF-16, not UTF-8: convert it, iconv -f utf-16 -t utf-8 < FILE > NEW"
            ) from None
        raise DataError(
            f"{name} is not UTF-8: byte 0x{error.object[error.start]:02x} at offset {place:,} "
            f"(line {_line_of(span.path, place):,}) does not begin a character: convert the file, "
            "e.g. "
            "iconv -f latin1 -t utf-8 < FILE > NEW"
        ) from None
    if "\0" in text:
        place = position + max(block.find(0), 0)
        raise DataError(
            f"{name} looks like binary data (a NUL byte at offset {place:,}): give UTF-8 text, or "
            "token ids in a file named .bin or .npy"
        )
    return text


def _line_of(path: Path, place: int) -> int:
    """The line of a byte, from 1."""
    count = 1
    with files.open_regular(path) as file:
        while place > 0 and (block := file.read(min(_READ, place))):
            count += block.count(b"\n")
            place -= len(block)
    return count

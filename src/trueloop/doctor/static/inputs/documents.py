"""From the bytes of a file to the programs in it: Python text, notebooks, fences of Markdown.

A *document* is a file as it is shown: its lines, its cells. A *program* is Python text that is
checked as a whole; findings name the document's own lines.
"""

from __future__ import annotations

import hashlib
import io
import re
import tokenize
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path

from trueloop import files
from trueloop.doctor.static.inputs.discovery import FileProblem
from trueloop.doctor.static.inputs.unsaved import unsaved
from trueloop.errors import cut

CODE_LIMIT = 2_000_000
"""Bytes of code in one file; beyond it is generated, and reading it would take too long."""
NOTEBOOK_LIMIT = 100_000_000
"""Bytes of a notebook, with the pictures in it."""
_BREAK = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Program:
    """Python text that is checked as a whole."""

    text: str
    """With line breaks as `\\n`."""
    indent: int = 0
    """How many columns further to the right it is in the document."""
    above: int = 0
    """How many lines of the document precede it."""


@dataclass
class Document:
    """A file that may be checked."""

    path: str
    text: str = ""
    """The text to show, with line breaks as `\n`."""
    programs: list[Program] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)
    cells: tuple[tuple[int, int], ...] = ()
    """Of a notebook: (first line in `text`, number of the cell, from 1) of each code cell."""

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    def cell(self, line: int) -> tuple[int, int]:
        """The cell of a line and the line in that cell; cell 0 in a file without cells."""
        position = bisect_right(self.cells, (line, 1 << 60)) - 1
        if position < 0:
            return 0, line
        first, number = self.cells[position]
        return number, line - first + 1


class UnreadableError(Exception):
    """A file that is not text in an encoding that Python would take: (line, why)."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(line, message)
        self.line = line
        self.message = message


def is_python(path: str) -> bool:
    """The file is one program, unchanged; true of all files but notebooks and Markdown."""
    return not path.endswith((".ipynb", ".md"))


def digest(data: bytes) -> str:
    """Equal for equal content of a file."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def read_bytes(path: str) -> bytes:
    """The content of a regular file, or the unsaved one. Raises `UnreadableError` for what is none,
    cannot be read or is too large."""
    limit = NOTEBOOK_LIMIT if path.endswith(".ipynb") else CODE_LIMIT
    data = unsaved(path)
    try:
        if data is None:
            return files.read_bytes(path, limit)
        if len(data) > limit:
            raise files.TooLargeError(Path(path), limit)
        return data
    except files.NotAFileError as error:
        raise UnreadableError(0, f"is {error.kind}, not a regular file: leave it out") from None
    except files.TooLargeError:
        why = f"is larger than {files.size(limit)}: leave it out with --exclude, or split it"
        raise UnreadableError(0, why) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnreadableError(0, f"cannot be read ({why})") from None


def decode(data: bytes, *, python: bool = True) -> str:
    """Text as Python reads it: byte order mark, PEP 263 declaration, UTF-8 otherwise; line breaks
    as `\\n`. Raises `UnreadableError`."""
    text, _ = decode_exactly(data, python=python)
    return _BREAK.sub("\n", text) if "\r" in text else text


def decode_exactly(data: bytes, *, python: bool = True) -> tuple[str, str]:
    """The text with its line breaks as they are, and the encoding (`utf-8-sig` with a mark)."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableError(1, "is UTF-16, which Python does not read: save it as UTF-8")
    if b"\0" in data:
        line = _line_of(data, data.index(b"\0"))
        raise UnreadableError(line, "contains null bytes: it is not Python text, or was damaged")
    encoding = "utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8"
    if python:
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except SyntaxError as error:
            # It also complains about bytes of the first lines, which are reported below.
            if "encoding problem" in str(error) or "unknown encoding" in str(error):
                why = cut(str(error.msg), 100)
                raise UnreadableError(
                    1, f"declares an encoding that Python does not know ({why}): correct the file"
                ) from None
    try:
        text = data.decode(encoding)
        if not encoding.startswith("utf-8"):
            _refuse_odd(text, encoding)
        return text, encoding
    except UnicodeDecodeError as error:
        line = _line_of(data, error.start)
        raise UnreadableError(line, _undecodable(data[error.start], encoding, python)) from None
    except (LookupError, ValueError) as error:  # such as `coding: hex`, which is not text
        why = cut(str(error), 100)
        raise UnreadableError(1, f"declares an encoding that Python refuses ({why})") from None


def _refuse_odd(text: str, encoding: str) -> None:
    """Some encodings can write characters that no source may contain."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UnreadableError(
            0, f"contains halves of characters in {encoding}: correct the file"
        ) from None
    if "\0" in text:
        raise UnreadableError(0, f"contains null characters in {encoding}: correct the file")


def _undecodable(byte: int, encoding: str, python: bool) -> str:
    if python and encoding == "utf-8":
        return (
            f"is not UTF-8 (byte 0x{byte:02x}) and declares no other encoding: save it as UTF-8, "
            "or declare one in its first line, such as # -*- coding: latin-1 -*-"
        )
    return f"is not {encoding.removesuffix('-sig')} (byte 0x{byte:02x}): save it as UTF-8"


def _line_of(data: bytes, offset: int) -> int:
    before = data[:offset]
    return 1 + before.count(b"\n") + len(re.findall(rb"\r(?!\n)", before))

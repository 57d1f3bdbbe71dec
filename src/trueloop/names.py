"""Names that others gave (of files, folders, classes), as text that can be printed and stored.

A file name on Linux is any bytes; Python reads those that are not UTF-8 as lone surrogates, which
neither a terminal, nor JSON, nor Parquet takes. Control characters steer a terminal, and marks of
the writing direction let a name look like a different one.
"""

from __future__ import annotations

import re
import unicodedata

_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LONG = {value[1]: key for key, value in _SHORT.items()}
_ESCAPE = re.compile(r"\\(?:([\\nrt])|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
_RAW = 0xDC00
"""A byte that is not UTF-8 is this much more, as a surrogate (PEP 383)."""
_JOINERS = "\u200c\u200d"
"""Part of words in some languages, and of emoji."""


def printable(name: str) -> str:
    r"""`name` with what cannot be printed, and spaces at its ends, as escapes: `caf\xe9 \x20`.

    Different names stay different: `from_printable` gives the name back. A backslash is doubled;
    `\xNN` from 80 on is a byte of a file name that is not UTF-8.
    """
    start = len(name) - len(name.lstrip())
    stop = len(name.rstrip())
    return "".join(
        _escape(char) if char == "\\" or _is_odd(char) or not start <= k < stop else char
        for k, char in enumerate(name)
    )


def from_printable(text: str) -> str:
    """The name of which `printable` made `text`."""
    return _ESCAPE.sub(_unescape, text)


def printable_line(text: str) -> str:
    """A message as one line for a terminal: single spaces, and escapes for what cannot be
    printed."""
    return "".join(_escape(char) if _is_odd(char) else char for char in " ".join(text.split()))


def printable_text(text: str) -> str:
    """A text for a terminal: line ends and tabs stay, and what could steer it comes as escapes."""
    return "".join(_escape(char) if _is_odd(char) and char not in "\n\t" else char for char in text)


def same_name(name: str) -> str:
    """`name` in the form in which equal names are equal: as one code point or two, é is é."""
    return unicodedata.normalize("NFC", name)


def _is_odd(char: str) -> bool:
    return char not in _JOINERS and unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _escape(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code < 0x80:
        return f"\\x{code:02x}"
    if _RAW + 0x80 <= code <= _RAW + 0xFF:
        return f"\\x{code - _RAW:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _unescape(match: re.Match[str]) -> str:
    short, byte, *longer = match.groups()
    if short:
        return _LONG[short]
    if byte:
        code = int(byte, 16)
        return chr(code if code < 0x80 else _RAW + code)
    return chr(int(longer[0] or longer[1], 16))

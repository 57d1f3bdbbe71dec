"""Files whose names come from outside: only regular ones, and no more bytes than expected.

Opening a FIFO waits for a writer, and a device may have no end. The functions here
check the path before they open it, and the file after.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from typing import IO, Any

Path = str | os.PathLike[str]

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)
_CHUNK = 1 << 20


class NotAFileError(OSError):
    """A path is not a regular file; `kind` is what it is, e.g. `a FIFO`."""

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(errno.EINVAL, f"it is {kind}, not a regular file", os.fspath(path))
        self.kind = kind


class TooLargeError(OSError):
    """A file is longer than the limit for reading."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(errno.EFBIG, f"it is larger than {size(most)}", os.fspath(path))


def special_kind(path: Path) -> str | None:
    """The kind of `path` (links followed) if it is neither a regular file nor a folder: `a FIFO`,
    `a socket`, `a character device` or `a block device`; None otherwise, also where nothing is."""
    try:
        kind = _kind(os.stat(path).st_mode)
    except (OSError, ValueError):
        return None
    return None if kind == "a folder" else kind


def open_regular(path: Path, mode: str = "rb", *, buffering: int = -1) -> IO[Any]:
    """`open(path, mode)` for a binary mode, and only for regular files: never waits for a FIFO.

    Raises `NotAFileError` for anything else, and the `OSError` of `open`.
    """
    assert "b" in mode, "text is decoded by the caller, who knows its encoding"
    try:
        _refuse(path, os.stat(path).st_mode)
    except FileNotFoundError:
        if mode[0] == "r":
            raise
    # What has been looked at may be replaced before it is opened: without O_NONBLOCK, a FIFO put
    # there would be waited for.
    extra = getattr(os, "O_NONBLOCK", 0)
    file = open(  # noqa: SIM115 - the caller closes it
        path, mode, buffering=buffering, opener=lambda name, flags: os.open(name, flags | extra)
    )
    try:
        _refuse(path, os.fstat(file.fileno()).st_mode)
    except BaseException:
        file.close()
        raise
    return file


def read_bytes(path: Path, most: int | None = None) -> bytes:
    """The content of the regular file at `path`, of at most `most` bytes.

    Raises `NotAFileError`, `TooLargeError`, and the `OSError` of `open`.
    """
    with open_regular(path) as file:
        if most is None:
            return bytes(file.read())
        found = io.BytesIO()
        # Piece by piece: a file that says nothing of its size (in /proc) may go on for ever.
        while chunk := file.read(min(_CHUNK, most + 1 - found.tell())):
            found.write(chunk)
            if found.tell() > most:
                raise TooLargeError(path, most)
        return found.getvalue()


def read_text(path: Path, most: int | None = None) -> str:
    """The content of the regular file at `path` as UTF-8; also raises `UnicodeDecodeError`."""
    return read_bytes(path, most).decode("utf-8")


def cannot_read(path: Path, error: OSError) -> str:
    """A line that says why `path` was not read, ending with what to do about it."""
    remedy = "check its permissions"
    if isinstance(error, NotAFileError):
        remedy = "give a regular file"
    elif isinstance(error, TooLargeError):
        remedy = "check that it is the file you mean"
    elif isinstance(error, (FileNotFoundError, NotADirectoryError)) or error.errno == errno.ELOOP:
        remedy = "check the path"
    return f"cannot read {os.fspath(path)} ({error.strerror or error}): {remedy}"


def size(count: float) -> str:
    """A number of bytes in words, e.g. `64 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:g} {unit}"
        count /= 1000
    return f"{count:g} GB"


def _refuse(path: Path, mode: int) -> None:
    kind = _kind(mode)
    if kind is not None:
        raise NotAFileError(path, kind)


def _kind(mode: int) -> str | None:
    """The kind of a file with this mode; None for a regular one."""
    if stat.S_ISREG(mode):
        return None
    return next((name for is_it, name in _KINDS if is_it(mode)), "something else")

"""Files that are whole or absent: written beside, flushed to disk, renamed into place."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from trueloop.errors import RunError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)


class WriteError(RunError):
    """A file of a run cannot be written: the disk is full, broken, or not to be written on."""


def write_atomic(path: Path, content: bytes | memoryview | Callable[[BinaryIO], object]) -> None:
    """Replace the file at `path` in one go: a reader, or a crash, finds the old one or the new one.

    `content` may be a function that writes into the open file. The folder is made if it is not
    there. Raises `WriteError` when it cannot be written or the
    disk is full; `path` is then as it was before.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise cannot_write(path, error) from None


def write_whole(path: Path, content: bytes | memoryview | Callable[[BinaryIO], object]) -> None:
    """`write_atomic`, which raises `OSError` instead."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Not tempfile, whose files nobody else may read.
        with temporary.open("wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        flush_folder(path.parent)
    finally:
        # It is gone after the rename; where it cannot be removed, it could not be made either.
        with suppress(OSError):
            temporary.unlink()


def cannot_write(path: Path, error: OSError) -> WriteError:
    """The message for a file of a run that cannot be written."""
    remedy = "check the disk or choose a different folder"
    if error.errno in _FULL:
        remedy = "free some space or choose a different folder"
    elif error.errno in _FORBIDDEN:
        remedy = "make it writable or choose a different folder"
    return WriteError(f"cannot write {path} ({error.strerror or error}): {remedy}")


def flush_folder(folder: Path) -> None:
    """Put the rename itself on disk; on Windows a folder cannot be opened for that."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""Files that are whole or absent: written beside, flushed to disk, renamed into place."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from trueloop.errors import RunError


def write_atomic(path: Path, content: bytes | memoryview) -> None:
    """Write `content` to a file that appears as `path` only when it is complete and on disk.

    Raises `RunError` when the folder cannot be written or the disk is full; `path` is then as it
    was before.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise RunError(
            f"cannot write {path}: {error.strerror}; free it or choose another folder"
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        _discard(temporary)
        reason = error.strerror or str(error)
        raise RunError(
            f"cannot write {path}: {reason}; free space or choose another folder"
        ) from None
    except BaseException:
        _discard(temporary)
        raise


def _discard(temporary: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)


def _sync_folder(folder: Path) -> None:
    """Put the rename itself on disk; a folder cannot be opened for that on Windows."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

"""One process at a time trains in a run directory: a lock that goes away with its process."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trueloop.checkpoint.atomic import cannot_write
from trueloop.errors import RunError
from trueloop.files import special_kind

LOCK = ".lock"
_TAKEN = (errno.EACCES, errno.EAGAIN)
# By process, since what a forked worker inherits of this is not true of it; by real path.
_held: dict[tuple[int, Path], _Hold] = {}


class _Hold:
    """A lock file that this process has, how many times over."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.handle = _take(file)
        self.count = 0

    def release(self) -> None:
        if self.handle is not None:
            # Removed while it is held, so that nobody can hold the file that is removed.
            with suppress(OSError):
                self.file.unlink()
            os.close(self.handle)


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold the run directory `folder`, which is there, against other processes.

    Within one process it may be held several times over. The system gives it up when the process
    ends, however that ends, and forked children do not inherit it. A file system without locks
    (or a system without POSIX ones) lets everybody in. Raises `RunError` when another process
    holds it, or nothing can be written there.
    """
    key = os.getpid(), folder.resolve()
    hold = _held.get(key) or _held.setdefault(key, _Hold(folder / LOCK))
    hold.count += 1
    try:
        yield
    finally:
        hold.count -= 1
        if not hold.count:
            del _held[key]
            hold.release()


def _take(file: Path) -> int | None:
    """The lock file, open and locked; None where there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    while True:
        if kind := special_kind(file):
            raise RunError(f"{file} is {kind}, not a lock: remove it")
        try:
            handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise cannot_write(file, error) from None
        try:
            # Not flock, whose locks forked workers inherit, and keep when this process is killed.
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(handle, 200, 0).decode(errors="replace").strip()
            os.close(handle)
            if error.errno not in _TAKEN:
                return None
            raise RunError(
                f"{file.parent} is being trained by another process ({owner or 'unknown'}): wait "
                "for its end, or stop it"
            ) from None
        if _is_that_file(handle, file):
            break
        os.close(handle)  # its last holder removed it just now
    os.ftruncate(handle, 0)
    with suppress(OSError):  # on a full disk it holds nobody's name
        os.pwrite(handle, f"pid {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    return handle


def _is_that_file(handle: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), file.stat())
    except FileNotFoundError:
        return False

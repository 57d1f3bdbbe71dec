"""Data that is kept from run to run: folders in the user's cache directory, each whole or absent.

An entry is named by a digest of all that it depends on. It is written under a temporary name, on
disk before it is renamed into place, and one process writes it while the others wait.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from trueloop import files
from trueloop.atomic import flush_folder

VARIABLE = "TRUELOOP_CACHE"
"""The environment variable that names the folder for everything that is kept."""
_MOST_OF_FREE_SPACE = 0.9
# Locks of files belong to the process: closing a second handle would give up the first one's.
_within_process = threading.RLock()


def directory(kind: str, place: str | os.PathLike[str] | None = None) -> Path:
    """Where entries of this kind are kept, e.g. `tokens`: in `place`, in $TRUELOOP_CACHE, or in the
    user's own folder for caches.

    Raises `OSError` where the user has none.
    """
    named = place or os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser() / kind
    return _users_own() / "trueloop" / kind


def _users_own() -> Path:
    """The folder for caches that the system gives each user (XDG Base Directory Specification)."""
    stated = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(stated):
        return Path(stated)
    try:
        home = Path.home()
    except RuntimeError:
        raise FileNotFoundError(2, "the home directory is unknown", "~/.cache") from None
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    return home / ".cache"


@contextmanager
def locked(entry: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[bool]:
    """Hold the lock of an entry, after all current holders; `waiting` is called if there are any.
    False where the file system has no locks, and other processes may have it too.

    The system gives it up when the process ends, however it ends. Raises `OSError` where the lock
    file cannot be made.
    """
    with _within_process:
        handle = _open_lock(entry)
        try:
            held = _take(handle, wait=False)
            if held is False:
                waiting()
                held = _take(handle, wait=True)
            yield bool(held)
        finally:
            os.close(handle)


def _open_lock(entry: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
    return os.open(entry.with_name(f"{entry.name}.lock"), flags, 0o644)


def _take(handle: int, *, wait: bool) -> bool | None:
    """True if this process has the lock now; None if the file system has no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        # Not flock, whose locks forked children inherit, and keep when this process is killed.
        fcntl.lockf(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True


@contextmanager
def publishing(entry: Path, *, alone: bool = True) -> Iterator[Path]:
    """A new folder, which becomes `entry` when it is left without an error; else it is removed.

    `alone` says that the caller has the entry's lock: the remains of a killed process are then
    removed first. Files in it are to be `flushed`.
    """
    if alone:
        for left in entry.parent.glob(f"{entry.name}.*.tmp"):
            shutil.rmtree(left, ignore_errors=True)
    temporary = _temporary(entry, "new")
    temporary.mkdir()
    try:
        yield temporary
        flush_folder(temporary)
        if entry.exists():  # and is not whole, or the caller would not write it
            remove(entry)
        temporary.rename(entry)
        flush_folder(entry.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _temporary(entry: Path, what: str) -> Path:
    who = f"{socket.gethostname()}-{os.getpid()}-{threading.get_native_id()}"
    return entry.with_name(f"{entry.name}.{what}-{who}.tmp")


@contextmanager
def flushed(path: Path) -> Iterator[IO[Any]]:
    """A new binary file, on disk when it is left."""
    with path.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def remove(entry: Path) -> None:
    """Take an entry away: all of it or, where that cannot be, nothing. Whoever has its files open
    or mapped keeps them (on Windows, they stay where they are)."""
    left = _temporary(entry, "old")
    with suppress(OSError):
        entry.rename(left)
    shutil.rmtree(left, ignore_errors=True)


def touch(entry: Path) -> None:
    """Note that the entry is used now, for `refusal`, which removes the others first."""
    with suppress(OSError):  # on a file system that is read-only, say
        os.utime(entry)


def refusal(entry: Path, size: int, budget: float) -> str | None:
    """Why an entry of `size` bytes cannot be written, in a few words; None where it can.

    All entries beside it are to take at most `budget` bytes with it: those that were not used for
    the longest time are removed for it, and so are the rests of those that were killed while they
    wrote. It may take nine tenths of what is free on the disk.
    """
    if size > budget:
        return f"they take {files.size(size)}, and the budget is {files.size(budget)}"
    _sweep(entry)
    others = sorted(_others(entry), key=lambda other: other.stat().st_mtime)
    taken = {other: _size(other) for other in others}
    excess = sum(taken.values()) + size - budget
    for other in others:
        if excess <= 0:
            break
        remove(other)
        excess -= taken[other]
    free = shutil.disk_usage(entry.parent).free
    if size > _MOST_OF_FREE_SPACE * free:
        return f"they take {files.size(size)}, and {files.size(free)} are free on that disk"
    return None


def _others(entry: Path) -> list[Path]:
    """The entries beside this one: all have names of one length, without a dot."""
    width = len(entry.name)
    return [
        other
        for other in entry.parent.iterdir()
        if other.is_dir() and len(other.name) == width and other != entry and "." not in other.name
    ]


def _size(entry: Path) -> int:
    with suppress(OSError):  # removed by somebody just now
        return sum(file.stat().st_size for file in entry.iterdir())
    return 0


def _sweep(entry: Path) -> None:
    """Remove temporary folders of other entries whose writers have ended."""
    for left in entry.parent.glob("*.tmp"):
        other = entry.with_name(left.name.partition(".")[0])
        if other == entry:
            continue
        with suppress(OSError):
            handle = _open_lock(other)
            try:
                if _take(handle, wait=False):
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(handle)

"""One process at a time trains in a run directory: a lock that goes away with its process."""

from __future__ import annotations

import errno
import os
import socket
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from trueloop.atomic import WriteError, cannot_write
from trueloop.errors import RunError
from trueloop.files import read_bytes, special_kind

LOCK = ".lock"
_TAKEN = (errno.EACCES, errno.EAGAIN)
# By process, since what a forked worker inherits of this is not true of it; by real path.
_held: dict[tuple[int, Path], _HeldLock] = {}


class _HeldLock:
    """A lock file that this process has, how many times over."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.handle = _acquire(file)
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

    Within one process it may be locked several times over. The system gives it up when the process
    ends, however that ends, and forked children do not inherit it. A file system without locks (or
    a system without POSIX ones) lets everybody in.

    Args:
        folder: the run directory.

    Raises:
        RunError: a different process has it, or the folder is read-only.
    """
    key = os.getpid(), folder.resolve()
    hold = _held.get(key) or _held.setdefault(key, _HeldLock(folder / LOCK))
    hold.count += 1
    try:
        yield
    finally:
        hold.count -= 1
        if not hold.count:
            del _held[key]
            hold.release()


def is_held_here(folder: Path) -> bool:
    """Whether this process holds the folder (`claimed`)."""
    return (os.getpid(), folder.resolve()) in _held


def is_held(folder: Path) -> bool | None:
    """Whether a running process holds a folder.

    Args:
        folder: one that `claimed` locks as long as it is in use.

    Returns:
        False if nobody has locked it, or the process of this host that did has ended without
        releasing it; None where it cannot be known: on a different host, or without file locks.
    """
    if os.name == "nt":
        return None
    try:
        owner = read_bytes(folder / LOCK, 4096).decode(errors="replace").split()
    except FileNotFoundError:
        return False
    except OSError:
        return None
    if len(owner) != 4 or owner[3] != socket.gethostname() or not owner[1].isdecimal():
        return None  # a process is just writing it, or this system has no file locks
    try:
        os.kill(int(owner[1]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # of a different user
    except (OSError, OverflowError):
        return None
    return True


def _acquire(file: Path) -> int | None:
    """The lock file, open and locked; None on a system without file locks."""
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
                f"{file.parent} is being trained by a different process ({owner or 'unknown'}): "
                "wait for its end, or stop it"
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


# Who writes into a folder of checkpoints, by process and real path.
_claims: weakref.WeakValueDictionary[tuple[int, Path], FolderClaim] = weakref.WeakValueDictionary()


class FolderClaim:
    """The right to write into one folder of checkpoints: one writer has it at a time.

    Against other processes it is the folder's lock. Within a process a fit has it to its end; one
    that a loop of the user's own has is passed on to the next that asks, and the former one is
    refused when it writes again. A read-only folder is not locked: writing reports the reason.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key: tuple[int, Path] | None = None
        self._close: Callable[[], object] = lambda: None
        self._fits = 0
        self._is_lost = False

    @property
    def _is_held(self) -> bool:
        return self._key is not None and self._key[0] == os.getpid()

    def acquire(self) -> None:
        """Hold the folder, which is made if it is not there. Raises `RunError` if a different
        process has it. No effect if it is locked already or is read-only."""
        if self._is_held:
            return
        key = os.getpid(), self._folder.resolve()
        other = _claims.get(key)
        if other is not None and other._is_held and (other._fits or self._is_lost):
            raise RunError(
                f"{self._folder} is being written by a second fit or loop of this process: give "
                "each a separate folder"
            )
        stack = ExitStack()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(claimed(self._folder))
        except (OSError, WriteError):
            return
        if other is not None and other._is_held:
            other.release()
            other._is_lost = True
        self._key, _claims[key] = key, self
        # Also when the loop's own code ends without a word, and at the end of the interpreter.
        self._close = weakref.finalize(self, _close_in, key[0], stack)

    def release(self) -> None:
        """Release the folder, unless a fit is running."""
        if self._is_held and not self._fits:
            self._key = None
            self._close()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder for a fit. Raises `RunError` if a different fit has it."""
        if self._is_held and self._fits:
            raise RunError(
                f"{self._folder} is being written by a second fit with the same Checkpoints: give "
                "each fit its own Checkpoints with a separate folder"
            )
        self.acquire()
        self._fits += 1
        try:
            yield
        finally:
            self._fits -= 1
            self.release()


def _close_in(process: int, stack: ExitStack) -> None:
    """Not in a forked child, to which the lock does not belong."""
    if os.getpid() == process:
        stack.close()

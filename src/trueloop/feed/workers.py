"""Worker processes of DataLoaders that die: noticed at once, and raised where batches are fetched.

Torch has a handler of SIGCHLD that raises a RuntimeError in whatever line the main thread is just
executing: in a forward, half-way through an optimizer's step, in a clean-up. For the workers of
loaders that are read through here, the death is noted instead, and raised at the next fetch.
"""

from __future__ import annotations

import re
import signal
import threading
import weakref
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

from trueloop.errors import DataError
from trueloop.uncompiled import skipped_by_compiler

_TORCHS_WORDS = re.compile(r"DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\) (?:is )?([^.]*)")
_known: set[int] = set()
"""Workers of the loaders that are read through here."""
_dead: dict[int, str] = {}
"""Those of them that have died, with torch's words for it."""
_fetching: frozenset[int] = frozenset()
"""Workers of the loader that the main thread is waiting for."""
_previous: Any = None
"""The handler of SIGCHLD that there was before: torch's."""


def worker_death(error: BaseException) -> DataError | None:
    """The error to raise for torch's RuntimeError about a dead worker; None for any other error."""
    text = str(error)
    found = _TORCHS_WORDS.search(text) if isinstance(error, RuntimeError) else None
    if found is None:
        return None
    if error.__cause__ is not None and (first := worker_death(error.__cause__)) is not None:
        return first  # it repeats what its handler said, with less in it
    where = f"a DataLoader worker died (pid {found[1]}: {found[2].strip()})"
    if "shared memory" in text:
        return DataError(
            f"{where}: it ran out of shared memory: use fewer workers, or allow more of it (in a "
            "container: --shm-size=8g)"
        )
    return DataError(
        f"{where}: see its output above; if there is none, it may have run out of memory: use "
        "fewer workers"
    )


def iterate(loader: Any) -> Iterator[Any]:
    """`iter(loader)`, whose `next` raises `DataError` if a worker of it dies or has died."""
    try:
        # Workers that live on from the last epoch are waited for here already.
        _refuse_dead(_pids(getattr(loader, "_iterator", None)))
        batches = iter(loader)
        pids = _pids(batches)
        if not pids:
            return batches  # type: ignore[no-any-return]
        if not pids <= _known:
            for pid in pids:  # a number may have belonged to a different worker before
                _dead.pop(pid, None)
            _known.update(pids)
            weakref.finalize(batches, _known.difference_update, pids).atexit = False
        _take_over()
        return _WorkerBatches(batches, pids)
    except RuntimeError as error:
        death = worker_death(error)
        if death is None:
            raise
        raise death from error


class _WorkerBatches(Iterator[Any]):
    """The batches of a loader with workers."""

    def __init__(self, batches: Iterator[Any], pids: frozenset[int]) -> None:
        self._batches = batches
        self._pids = pids

    def __next__(self) -> Any:
        try:
            return self._next()
        except RuntimeError as error:
            death = worker_death(error)
            if death is None:
                raise
            # The others have nothing left to do. Were they left to the collector, torch would wait
            # for seconds for each.
            getattr(self._batches, "_shutdown_workers", lambda: None)()
            raise death from error

    def _next(self) -> Any:
        global _fetching
        _refuse_dead(self._pids)
        if threading.current_thread() is not threading.main_thread():
            return next(self._batches)
        before, _fetching = _fetching, self._pids
        try:
            return next(self._batches)
        finally:
            _fetching = before


def _pids(batches: Any) -> frozenset[int]:
    workers: Iterable[Any] = getattr(batches, "_workers", None) or ()
    return frozenset(worker.pid for worker in workers if worker.pid is not None)


def _refuse_dead(pids: frozenset[int]) -> None:
    for pid in pids & _dead.keys():
        raise RuntimeError(_dead[pid])


def _take_over() -> None:
    """Put `_on_death` before torch's handler, which its first loader with workers has set."""
    global _previous
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGCHLD"):
        return
    handler = signal.getsignal(signal.SIGCHLD)
    if handler is not _on_death and callable(handler):
        _previous = handler
        # A worker may end in the middle of a compiled model.
        _, skip_all_below = skipped_by_compiler()
        skip_all_below(_on_death.__code__)
        signal.signal(signal.SIGCHLD, _on_death)


def _on_death(number: int, frame: FrameType | None) -> None:
    try:
        _previous(number, frame)
    except RuntimeError as error:
        found = _TORCHS_WORDS.search(str(error))
        pids = {int(pid) for pid in found[1].split(",")} if found else set()
        if not pids or not pids <= _known:
            raise
        _dead.update(dict.fromkeys(pids, str(error)))
        if pids & _fetching:
            raise

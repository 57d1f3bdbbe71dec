"""The next batch fetched on a thread, while the update of the last one runs."""

from __future__ import annotations

import atexit
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from trueloop import ranks

WORTH = 1e-3
"""Seconds that a batch must take to be fetched on a thread: far more than handing it over costs."""
_LOOKED_AT = 6
"""Batches that are measured; the first of these, which finds nothing in any cache, does not
count."""
_IDLE = 2.0
"""Seconds after which a thread that nobody asks for a batch ends; the next request starts one."""
_END = object()

_NAME = "trueloop-feed"

users_code = threading.RLock()
"""Held while `get_batch` or a transform of the user's runs: never two of them at once, whichever
feeds they belong to, since they may share what they read from."""
_running: set[_Fetcher] = set()
"""Those whose thread runs."""
_is_set_up = False


class FetchAhead:
    """Whether a feed fetches its batches on a thread, by what the first of them cost."""

    def __init__(self, wanted: bool | None, *, runs_users_code: bool = False) -> None:
        """`wanted` is None to decide it by measuring."""
        self.wanted = wanted
        self._runs_users_code = runs_users_code
        self._seconds: list[float] = []
        self._waited: list[float] = []

    def over(self, batches: Iterator[Any], device: torch.device | None = None) -> Iterator[Any]:
        """The same batches; where it pays, each fetched while the one before is used. `device` is
        the accelerator that is to be the thread's current one."""
        if self.wanted is False or _has_modes():
            return batches
        return self._judged(batches, device) if self.wanted is None else ahead(batches, device)

    def _judged(self, batches: Iterator[Any], device: torch.device | None) -> Iterator[Any]:
        """`batches`, the first of which are measured, as far as that takes to decide."""
        while self.wanted is None:
            batch = self._measured(batches)
            if batch is _END:
                return
            if len(self._seconds) == _LOOKED_AT:
                self.wanted = self._pays(on_accelerator=device is not None)
            yield batch
        yield from ahead(batches, device) if self.wanted else batches

    def _measured(self, batches: Iterator[Any]) -> Any:
        before = _generators() if self._runs_users_code else None
        started, computed = time.perf_counter(), time.thread_time()
        batch = next(batches, _END)
        seconds = time.perf_counter() - started
        if batch is _END:
            return _END
        self._seconds.append(seconds)
        self._waited.append(seconds - (time.thread_time() - computed))
        if before is not None and before != _generators():
            # On a thread, its draws would fall between those of the update, anywhere.
            self.wanted = False
        return batch

    def _pays(self, *, on_accelerator: bool) -> bool:
        seconds = _median(self._seconds[1:])
        if seconds < WORTH:
            return False
        waits = _median(self._waited[1:]) > seconds / 2  # for a disk, say
        return waits or _spare_cores(1 if on_accelerator else torch.get_num_threads()) > 0


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _spare_cores(busy: int) -> int:
    """Cores that this process may take, of several ranks an even share, beside the `busy` ones."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) // ranks.local_world_size() - busy


def _has_modes() -> bool:
    """Whether torch's operations depend on something that only this thread has: autocast, a default
    device, a mode of the user's."""
    return bool(
        torch._C._is_any_autocast_enabled()
        or torch._C._len_torch_function_stack()
        or torch._C._len_torch_dispatch_stack()
    )


def _generators() -> tuple[Any, ...]:
    """The state of the process's CPU generators."""
    name, keys, *rest = np.random.get_state()
    state = torch.get_rng_state().numpy().tobytes()
    return state, name, np.asarray(keys).tobytes(), rest, random.getstate()


def ahead(batches: Iterator[Any], device: torch.device | None = None) -> Iterator[Any]:
    """`batches`, each fetched on a thread when the one before is handed out.

    The same batches in the same order, and an error where its batch would have come. The thread
    ends with this iterator, before the process is forked, and at the interpreter's end; where one
    is needed after that, it is started again.
    """
    fetcher = _Fetcher(batches, device)
    del batches  # the thread's alone
    try:
        fetcher.ask()
        while (batch := fetcher.take()) is not _END:
            fetcher.ask()
            yield batch
            batch = None  # the next one may be as large
    finally:
        fetcher.close()


def remedy() -> str:
    """A note for the message about the user's code that failed on a thread."""
    if threading.current_thread().name != _NAME:
        return ""
    return ", or write fetch_ahead=False if it works only in the loop's own thread"


@contextmanager
def _not_in_users_code() -> Iterator[None]:
    """Let others run the user's code, where this thread is just in it: the batch that it waits for
    may need that."""
    lock: Any = users_code
    if not lock._is_owned():
        yield
        return
    depth = lock._release_save()
    try:
        yield
    finally:
        lock._acquire_restore(depth)


class _Fetcher:
    """Fetches one batch at a time, when it is asked to, on a thread that may end between any two.

    The lock is one that its owner may take again: the garbage collector, which can run anywhere,
    may close a pass in the middle of any line here.
    """

    def __init__(self, batches: Iterator[Any], device: torch.device | None) -> None:
        self._batches = batches
        self._device = device
        self._modes = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._is_asked = False
        self._found: list[tuple[Any, BaseException | None]] = []
        """The batch that waits to be taken, or the error in its place."""
        self._is_ending = False
        self._is_closed = False

    def ask(self) -> None:
        """Have the next batch fetched."""
        with self._changed:
            self._is_asked = True
            self._wake()

    def take(self) -> Any:
        """The batch that was asked for, or `_END`; raises what fetching it has raised."""
        with _not_in_users_code(), self._changed:
            while not self._found:
                # The thread may have ended, for a fork say, before it came to it.
                if self._thread is None and not self._wake():
                    self._is_asked = False
                    self._found.append(self._fetch())
                else:
                    self._changed.wait()
            batch, error = self._found.pop()
        if error is None:
            return batch
        try:
            raise error
        finally:
            del error  # which refers to this frame

    def close(self) -> None:
        """End the thread for good."""
        self._is_closed = True
        self.pause()
        self._found.clear()

    def pause(self) -> None:
        """End the thread until it is needed again, after the batch that it is just fetching."""
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()
        # Within the user's code, which the thread may be waiting for, nobody waits for the thread.
        lock: Any = users_code
        if not lock._is_owned():
            thread.join()

    def _wake(self) -> bool:
        """Whether a thread is there for what is asked; none can be started as the interpreter goes
        down, and where the system allows no more."""
        if self._thread is None:
            _set_up()
            self._is_ending = False
            thread = threading.Thread(target=self._serve, name=_NAME, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
            _running.add(self)
        self._changed.notify_all()
        return True

    def _serve(self) -> None:
        inference, gradients = self._modes
        with torch.inference_mode(inference), torch.set_grad_enabled(gradients):
            while self._waits_for_request():
                found = self._fetch()
                with self._changed:
                    self._found.append(found)
                    self._changed.notify_all()
                del found

    def _waits_for_request(self) -> bool:
        """Wait to be asked for a batch; False if the thread is to end instead."""
        with self._changed:
            while not self._is_asked and not self._is_ending and not self._is_closed:
                if not self._changed.wait(_IDLE):
                    break
            if self._is_asked and not self._is_ending and not self._is_closed:
                self._is_asked = False
                return True
            self._thread = None
            _running.discard(self)
            # The first consumer that waits for a batch starts a second thread.
            self._changed.notify_all()
            return False

    def _fetch(self) -> tuple[Any, BaseException | None]:
        try:
            with self._on_device():
                return next(self._batches, _END), None
        except BaseException as error:
            return None, error

    def _on_device(self) -> AbstractContextManager[Any]:
        """Its streams are those of the thread's current device."""
        if self._device is None or self._device.type != "cuda":
            return nullcontext()
        return torch.cuda.device(self._device)


def _set_up() -> None:
    """Threads do not survive a fork, and what one is in the middle of would stay so for ever in the
    child; nor may they compute while the interpreter goes down."""
    global _is_set_up
    if not _is_set_up:
        _is_set_up = True
        atexit.register(_pause_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_pause_all, after_in_child=_running.clear)


def _pause_all() -> None:
    for fetcher in list(_running):
        fetcher.pause()

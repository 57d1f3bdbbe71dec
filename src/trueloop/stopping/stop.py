"""The end of a run for a signal or the clock, agreed on by all ranks, within its grace time."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from trueloop import _options, ranks
from trueloop.errors import Interrupted
from trueloop.uncompiled import skipped_by_compiler

# Those that ask for an end: Ctrl-C, a scheduler's last word, and its warning some time ahead.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGUSR1")
# timeout(1) and others send one signal twice, to the process and to its group.
_SAME_SIGNAL_SECONDS = 0.25
# On many ranks, the terminal and the launcher may each send it, in their own time.
_SAME_SIGNAL_ON_RANKS_SECONDS = 5.0
_LOOK_SECONDS = 0.2
_JOIN_SECONDS = 2.0
_listening: set[int] = set()
"""File descriptors that signals are written to."""
_hooked = False


class Stop:
    """Why the loop should end before its time: a signal, the clock or a request of the program's
    (or early stopping, noted here).

    The first SIGINT, SIGTERM or SIGUSR1 only leaves a note, so that no update is cut in half; the
    second one raises `Interrupted` (a `KeyboardInterrupt`). Signals reach only Python's main
    thread: elsewhere only the clock counts. The loop asks `is_due` where it can end; `reason` does
    not change between those places. As a context manager it sets the signals' handlers, and puts
    back those that it found.

    On many ranks a signal to one of them, or the clock of one, ends the run on all: every rank asks
    `is_due` at the same places of its work (after each update, at each batch of an evaluation), and
    gets the same answer, reason and signal there. Signals that follow the first are passed over
    there, but for a Ctrl-C after more than five seconds: the launcher repeats those that it gets.

    `grace_seconds` are what whoever sent the signal leaves the process before SIGKILL. Where the
    loop has not come to ask `is_due` shortly before they are over (it waits for data, for a rank,
    for the compiler), the run is left without a further save: by `Interrupted`, or, where the main
    thread is blocked by something that no exception can end, by the end of the process. In one
    process Ctrl-C has no such end, since it can be pressed again.
    """

    def __init__(
        self,
        max_seconds: float | None,
        *,
        grace_seconds: float = 30.0,
        asked: Callable[[], str | None] = lambda: None,
    ) -> None:
        if max_seconds is not None:
            _options.positive("max_seconds", max_seconds, "3600")
        self.reason = ""
        """Empty, `interrupted`, `out of time`, `stopped` or `stopped early`."""
        self.words = ""
        """The program's own, if it asked for the end."""
        self._asked = asked
        self._grace = _options.positive("grace_seconds", grace_seconds, "30")
        self._deadline = None if max_seconds is None else time.monotonic() + max_seconds
        self._noted: int | None = None
        """The first signal, by the main thread's handler."""
        self._noted_at = 0.0
        self._heard: int | None = None
        """The first signal, by the thread: of this process or of any rank."""
        self._heard_at = 0.0
        self._agreed: int | None = None
        """The signal for which the run ends."""
        self._agreement = ranks.Agreement()
        self._previous: dict[int, Any] = {}
        self._process = os.getpid()
        self._cuts_wait = False
        """A wait for data is to end with the next signal."""
        self._has_cut = False
        self._leaves = False
        """The grace time is over: the next signal raises."""
        self._has_left = False
        self._raised: Interrupted | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def signal(self) -> int | None:
        """The number of the signal for which the run ends; None if it ends for a different
        reason."""
        return self._agreed if self.reason == "interrupted" else None

    def interruption(self, error: BaseException) -> Interrupted | None:
        """The `Interrupted` that an exception is, or that was raised here before: it may have come
        up in a compiler, or in C, which makes an error of its own of it. None for others."""
        return error if isinstance(error, Interrupted) else self._raised

    def is_due(self, *, between_updates: bool = True) -> bool:
        """Whether to end here; settles `reason`, on many ranks as all of them have agreed. Inside
        an accumulation window only a signal ends the run: all else has time until the update."""
        number = self._heard if self._noted is None else self._noted
        reason = "" if number is None else "interrupted"
        if not reason and self._deadline is not None and time.monotonic() > self._deadline:
            reason = "out of time"
        words = self._asked() or ""
        if not reason and words:
            reason = "stopped"
        if not between_updates and reason != "interrupted":
            return False
        if ranks.is_distributed():
            if self.reason or not self._agreement.ask(bool(reason)):
                return bool(self.reason)
            wishes = ranks.gathered((reason, number, words), "why the run ends")
            # A signal before the clock: it is to be seen in the exit status.
            order = ("interrupted", "out of time", "stopped", "")
            reason, number, words = min(wishes, key=lambda wish: order.index(wish[0]))
        if reason:
            self.reason, self._agreed = reason, number
            self.words = words if reason == "stopped" else ""
        return bool(self.reason)

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            # A signal may come in the middle of a compiled model, where what Python calls next is
            # compiled, or refused.
            _, skip_all_below = skipped_by_compiler()
            skip_all_below(Stop._note.__code__)
            for number in (getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)):
                # None is a handler from outside Python, which could not be put back.
                if signal.getsignal(number) is not None:
                    self._previous[number] = signal.signal(number, self._note)
            self._listen()
        return self

    def _listen(self) -> None:
        """Start the thread: Python's handlers run in the main thread, and not while that is in a
        collective."""
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        _keep_children_quiet(self._writer.fileno())
        self._thread = threading.Thread(target=self._keep_watch, name="trueloop-stop", daemon=True)
        self._thread.start()

    def _note(self, number: int, frame: Any) -> None:
        if os.getpid() != self._process:
            return  # a child, which its parent looks after
        if self._leaves and not self._has_left:
            self._has_left = True
            self._raised = Interrupted(self._heard or number, "there was no time left for a save")
            raise self._raised
        cuts = self._cuts_wait
        if cuts and ranks.here.phase == "waiting for data":
            # Set before the other is cleared: the thread asks for no second cut, which would be
            # raised anywhere while the run ends.
            self._has_cut = True
            self._cuts_wait = False
            raise WaitInterrupted
        self._cuts_wait = False
        now = time.monotonic()
        if self._noted is None:
            self._noted, self._noted_at = number, now
        elif not cuts and not self._is_repeated(number, now):
            self._raised = Interrupted(number)
            raise self._raised

    def _is_repeated(self, number: int, now: float) -> bool:
        """Whether a signal is only the first one again."""
        seconds = now - self._noted_at
        if ranks.is_distributed():
            return number != signal.SIGINT or seconds < _SAME_SIGNAL_ON_RANKS_SECONDS
        return number == self._noted and seconds <= _SAME_SIGNAL_SECONDS

    def _keep_watch(self) -> None:
        """The work of the thread until the run has ended."""
        while not self._over.is_set():
            waits = self._heard is None and not ranks.is_distributed()
            ready, _, _ = select.select([self._reader], [], [], None if waits else _LOOK_SECONDS)
            if ready:
                self._hear(self._reader.recv(4096))
            if self._heard is None and (number := ranks.stop_signal()) is not None:
                self._heard_at, self._heard = time.monotonic(), number
            if self._heard is None or self.reason or self._over.is_set():
                continue
            ranks.ask_to_stop(self._heard)
            self._mind_the_time(self._heard)

    def _hear(self, numbers: bytes) -> None:
        if self._wakeup != -1:  # somebody else's
            with suppress(OSError):
                os.write(self._wakeup, numbers)
        for number in numbers:
            if number in self._previous and self._heard is None:
                self._heard_at, self._heard = time.monotonic(), number

    def _mind_the_time(self, number: int) -> None:
        """Give up a wait for data, and in the end the run, as the grace time goes by."""
        seconds = time.monotonic() - self._heard_at
        spare = min(4.0, self._grace / 4)
        alone = not ranks.is_distributed()
        if (alone and number == signal.SIGINT) or ranks.here.phase == "saving" or self._has_left:
            return
        waits = alone and ranks.here.phase == "waiting for data"
        if waits and seconds > self._grace / 2 and not (self._cuts_wait or self._has_cut):
            self._cuts_wait = True
            self._wake(number)
        if seconds > self._grace - spare and not self._leaves:
            self._leaves = True
            self._wake(number)
        if seconds > self._grace - spare / 2:
            ranks.look()
            if ranks.speaks():
                line = b"trueloop: interrupted; there was no time left for a save\n"
                with suppress(OSError):
                    os.write(2, line)
            os._exit(128 + number)

    def _wake(self, number: int) -> None:
        """Have the handler run in the main thread."""
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, number)

    def __exit__(self, *failure: object) -> None:
        self._over.set()
        while self._previous:
            signal.signal(*self._previous.popitem())
        if self._thread is not None:
            signal.set_wakeup_fd(self._wakeup)
            _listening.discard(self._writer.fileno())
            self._writer.send(b"\0")
            self._thread.join(_JOIN_SECONDS)
            if not self._thread.is_alive():  # else the store of the ranks does not answer
                self._writer.close()
                self._reader.close()
        if self.reason == "interrupted":
            ranks.has_stopped()


class WaitInterrupted(BaseException):
    """A wait for data that the grace time does not allow.

    In one process a wait that takes half of it is given up: the state after the last update is
    still there to be saved, and the batch is fetched again by a resume.
    """


def _keep_children_quiet(descriptor: int) -> None:
    """Let no forked child (a loader's worker) write its own signals to its parent."""
    global _hooked
    _listening.add(descriptor)
    if not _hooked and hasattr(os, "register_at_fork"):
        _hooked = True
        os.register_at_fork(after_in_child=_be_quiet)


def _be_quiet() -> None:
    if _listening and threading.current_thread() is threading.main_thread():
        descriptor = signal.set_wakeup_fd(-1)
        if descriptor not in _listening:
            signal.set_wakeup_fd(descriptor)

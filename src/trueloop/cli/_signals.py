"""Ctrl-C and similar signals on the command line, from its first line to the process's very end.

The first SIGINT, SIGTERM or SIGUSR1 ends the command with one line and status 128 + the signal's
number, whatever it does: importing, reading data, writing a report. (Training has its own handlers,
`trueloop.stopping`, and ends saved.) A second one, while the first is still being obeyed, ends the
process at once. None of them is ever answered with a traceback.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

from trueloop.errors import Interrupted

T = TypeVar("T")
_NAMES = ("SIGINT", "SIGTERM", "SIGUSR1")
# timeout(1) and others send one signal twice, to the process and to its group.
_SAME_SIGNAL_SECONDS = 0.25
_SAME_SIGNAL_ON_RANKS_SECONDS = 5.0
_LOOK_SECONDS = 0.2


def interrupted_by(number: int) -> int:
    """The exit status after a signal, as shells have it: 130 after SIGINT, 143 after SIGTERM."""
    return 128 + number


class Signals:
    """Holds the signals' handlers as a context manager, and puts back those that it found.

    With `to_the_end`, a process that ends after it keeps the signals quiet until it is gone.
    Signals that are ignored (of a background job, under nohup) stay ignored. Outside Python's main
    thread, the only one that receives signals, it does nothing.
    """

    def __init__(self, *, to_the_end: bool = False) -> None:
        self.to_the_end = to_the_end
        self._process = os.getpid()
        self._previous: dict[int, Any] = {}
        self._noted: int | None = None
        """The signal that was raised as an exception."""
        self._noted_at = 0.0
        self._ending = False
        self._status = 0

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
                # None is a handler from outside Python, which could not be put back.
                if signal.getsignal(number) not in (None, signal.SIG_IGN):
                    self._previous[number] = signal.signal(number, self._on_signal)
        self._unraisable, sys.unraisablehook = sys.unraisablehook, self._not_raised
        if self.to_the_end:
            atexit.register(self._ignore)  # the first to be registered is the last to run
        return self

    def __exit__(self, *failure: object) -> None:
        sys.unraisablehook = self._unraisable
        if failure[0] is not None or not self.to_the_end:
            self.release()
        for number in self._previous:
            signal.signal(number, self._leave)

    def release(self) -> None:
        """Put back the handlers that were there before."""
        self.to_the_end = False
        if self._previous:
            self._stop_looking()
        while self._previous:
            signal.signal(*self._previous.popitem())

    def outlast(self, work: Callable[[], T]) -> T | int:
        """The result of `work`; or, if a signal ends it, the exit status, after one line."""
        try:
            result = work()
            self._status = result if isinstance(result, int) else 0
        except BaseException as error:
            # An import in C may turn the interruption into an error of its own.
            if self._noted is None and not isinstance(error, KeyboardInterrupt):
                raise
            self._ending = True
            self._stop_looking()
            return self._interrupted(error)
        return result

    def _interrupted(self, error: BaseException) -> int:
        words = f"; {error}" if isinstance(error, KeyboardInterrupt) and error.args else ""
        number = getattr(error, "signal", self._noted)
        self._status = interrupted_by(signal.SIGINT if number is None else number)
        speaks, status = _on_ranks()
        # The launcher ends all ranks where one has failed.
        self._status = self._status if status is None else status
        with suppress(OSError, ValueError):
            if speaks:
                print(f"trueloop: interrupted{words}", file=sys.stderr, flush=True)
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        return self._status

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked child, to which this is its own affair
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        elif self._ending:
            return
        elif self._noted is None:
            self._noted, self._noted_at = number, time.monotonic()
            if _is_below_torchs_import(frame):
                self._leave_at_once(number, " while torch was imported; nothing was written")
            self._look_after_it()
            raise Interrupted(number)
        elif not self._is_repeated(number):
            self._leave_at_once(self._noted)

    def _leave_at_once(self, number: int, words: str = "") -> None:
        speaks, status = _on_ranks()
        if speaks:
            with suppress(OSError):
                os.write(2, f"trueloop: interrupted{words}\n".encode())
        os._exit(interrupted_by(number) if status is None else status)

    def _is_repeated(self, number: int) -> bool:
        """Whether a signal is only the first one again: a launcher of many ranks repeats, in its
        own time, what the terminal or the scheduler has sent to all."""
        seconds = time.monotonic() - self._noted_at
        if os.environ.get("WORLD_SIZE", "1").strip() != "1":
            return seconds <= _SAME_SIGNAL_ON_RANKS_SECONDS
        return number == self._noted and seconds <= _SAME_SIGNAL_SECONDS

    def _look_after_it(self) -> None:
        """See in a moment whether the interruption is still on its way: code in C (torch's, when it
        imports numpy), `__del__` and callbacks swallow whatever is raised in them."""
        if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) in self._own_alarm:
            signal.signal(signal.SIGALRM, self._look)
            signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS)

    def _look(self, number: int, frame: FrameType | None) -> None:
        if self._ending or self._noted is None or os.getpid() != self._process:
            return
        if _is_on_its_way(sys.exc_info()[1]):  # a clean-up that takes its time
            signal.setitimer(signal.ITIMER_REAL, _LOOK_SECONDS)
            return
        noted, self._noted = self._noted, None
        signal.raise_signal(noted)  # to whoever handles it now

    @property
    def _own_alarm(self) -> tuple[Any, ...]:
        return (signal.SIG_DFL, self._look)

    def _stop_looking(self) -> None:
        if hasattr(signal, "setitimer") and signal.getsignal(signal.SIGALRM) == self._look:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _not_raised(self, what: Any) -> None:
        """An interruption that Python could not raise where it came up is not to be printed."""
        if not isinstance(what.exc_value, Interrupted):
            self._unraisable(what)

    def _leave(self, number: int, frame: FrameType | None) -> None:
        """All is done and said: what the process still waits for (a thread, a worker) is left."""
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        os._exit(self._status)

    def _ignore(self) -> None:
        if self.to_the_end and os.getpid() == self._process:
            for number in self._previous:
                signal.signal(number, signal.SIG_IGN)


def _is_below_torchs_import(frame: FrameType | None) -> bool:
    """Whether `import torch` is under way.

    Where its C++ has called Python (to import numpy) and an exception comes back, the process ends
    with SIGABRT, or the import carries on without numpy. Nothing is lost by leaving at once: a
    command has nothing to save before torch is there. Modules of torch that are imported later, in
    the middle of a command, are Python.
    """
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") == "torch":
            return True
        frame = frame.f_back
    return False


def _on_ranks() -> tuple[bool, int | None]:
    """Whether this process prints for all ranks, and the exit status of their failure."""
    if os.environ.get("WORLD_SIZE", "1").strip() == "1":
        return True, None
    failure = sys.modules.get("trueloop.ranks.failure")
    if failure is None:  # the signal came before the import
        return os.environ.get("RANK", "0").strip() == "0", None
    known = failure.known
    return failure.speaks(), None if known is None else known.status


def _is_on_its_way(error: BaseException | None) -> bool:
    """Whether an interruption is being handled, or is what has led to the error that is."""
    for _ in range(100):
        if error is None or isinstance(error, KeyboardInterrupt):
            break
        error = error.__context__
    return error is not None

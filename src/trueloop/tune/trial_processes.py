"""Trials in separate processes: a crash, a hang or out of memory ends only that trial.

One process reads the data and starts each trial as a copy of itself (fork), so that a trial costs
milliseconds to start and shares the data's memory. It computes nothing with several threads and
touches no GPU: both would be broken in its copies.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trueloop.errors import ConfigError, RunError, TrueloopError, cut
from trueloop.tune.memory import limit_memory

DONE, NO_MEMORY, NO_TIME, CRASHED, REFUSED = (
    "done", "out of memory", "out of time", "crashed", "refused",
)  # fmt: skip
RunJob = Callable[[Any], Any]
Prepare = Callable[..., tuple[RunJob, Any]]
_GRACE = 10.0
"""Seconds that the process has to end when the tuning is over."""
_LOOK = 0.5


@dataclass(frozen=True, kw_only=True)
class TrialSpec:
    """The request to one process."""

    job: Any
    """For the function that `prepare` returned; it can be pickled."""
    seconds: float | None = None
    """After which the trial is ended from outside; None waits."""
    memory: int | None = None
    """Bytes that it may take on the host beside what it starts with; None for no limit."""
    log: Path | None = None
    """Where all that it prints goes; None keeps only the last line, for the reason."""


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """How a trial ended."""

    status: str
    value: Any = None
    """The result of the job, of one that is done."""
    reason: str = ""
    """Why it is not done, in words."""
    seconds: float = 0.0

    @property
    def is_done(self) -> bool:
        return self.status == DONE


class TrialProcesses:
    """The process that starts the trials, as a context manager.

    `prepare(*args)` runs in it, once, and returns the function that does a job, and facts for
    `ready`. Ctrl-C reaches only this process, and leaving the context ends the others.
    """

    def __init__(self, prepare: Prepare, *args: Any) -> None:
        if not hasattr(os, "fork"):
            raise ConfigError(
                "trueloop tune starts its trials by fork, which this system does not have: run it "
                "on Linux or macOS (in WSL on Windows)"
            )
        self._prepare, self._args = prepare, args
        self._pid: int | None = None
        """Of the trial that is running."""
        self._is_started = False

    def __enter__(self) -> TrialProcesses:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._server = context.Process(target=_serve, args=(self._prepare, self._args, theirs))
        with _interrupts_blocked():
            self._server.start()
        theirs.close()
        return self

    def started(self, seconds: float | None = None) -> None:
        """Wait until the process has imported what it needs and begins to read, or so long."""
        if not self._is_started and self._connection.poll(seconds):
            self._receive()
            self._is_started = True

    def __exit__(self, *failure: object) -> None:
        self.stop(signal.SIGKILL)
        self._connection.close()  # which it takes for the sign to end
        self._server.join(_GRACE)
        if self._server.is_alive():
            self._server.kill()
            self._server.join()

    def ready(self, seconds: float | None = None) -> Any:
        """Wait until the data are read; the facts that `prepare` returned, None if that takes
        longer than `seconds`. Raises what `prepare` raised."""
        began = time.monotonic()
        self.started(seconds)
        left = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
        if not self._is_started or not self._connection.poll(left):
            return None
        said = self._receive()
        if isinstance(said, BaseException):
            raise said
        return said

    def run(self, trial: TrialSpec) -> TrialResult:
        """Do the trial's job and wait for its end."""
        self.start(trial)
        while (outcome := self.poll(_LOOK)) is None:
            pass
        return outcome

    def start(self, trial: TrialSpec) -> None:
        """Start the trial; `poll` returns its result."""
        assert self._pid is None, "one trial at a time"
        self._connection.send(trial)
        self._pid = self._receive()

    def poll(self, seconds: float) -> TrialResult | None:
        """How the trial ended; None if it is still going after `seconds`."""
        if not self._connection.poll(seconds):
            return None
        outcome = self._receive()
        self._pid = None
        assert isinstance(outcome, TrialResult)
        return outcome

    def stop(self, number: int) -> None:
        """Send the running trial, and what it has started, a signal."""
        if self._pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, number)

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._server.join(_GRACE)
            raise RunError(
                "the process that reads the data and starts the trials ended unexpectedly "
                f"({_of_status(self._server.exitcode)}): see its output above"
            ) from None


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A child inherits that, and so is not interrupted before it says what it does about it."""
    held = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, held)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, held)


def _serve(prepare: Prepare, args: tuple[Any, ...], connection: Connection) -> None:
    """The work of the process: read the data, then start one trial after the other."""
    os.setsid()  # a terminal's Ctrl-C is the parent's affair
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
    # The driver's own count of devices initialises CUDA, which a copy of this process cannot use.
    os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    connection.send(None)  # all is imported
    try:
        run_job, facts = prepare(*args)
    except (TrueloopError, OSError, MemoryError) as error:
        connection.send(error)
        return
    connection.send(facts)
    with TemporaryDirectory(prefix="trueloop-tune-") as folder, suppress(EOFError, OSError):
        while True:
            trial = connection.recv()
            connection.send(_run_trial(trial, run_job, connection, Path(folder) / "log"))


def _run_trial(
    trial: TrialSpec, run_job: RunJob, connection: Connection, spare: Path
) -> TrialResult:
    """One trial from start to end, however it ends."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    spare.unlink(missing_ok=True)
    log = trial.log or spare
    process = context.Process(target=_do, args=(trial, run_job, sender, log))
    began = time.monotonic()
    process.start()
    sender.close()
    connection.send(process.pid)
    try:
        # The other one tells that nobody waits for the outcome any more.
        heard = wait([receiver, connection], trial.seconds)
        status, value, reason = receiver.recv() if receiver in heard else (NO_TIME, None, "")
        process.join(_GRACE if receiver in heard else 0)
    except EOFError:
        process.join(_GRACE)
        status, value = _killed(process.exitcode), None
        reason = f"{_of_status(process.exitcode)}{_last_line(log)}"
    finally:
        _end(process)
        receiver.close()
    return TrialResult(status=status, value=value, reason=reason, seconds=time.monotonic() - began)


def _end(process: Any) -> None:
    """End the trial's process and all that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    if process.is_alive():
        process.kill()
    process.join()


def _do(trial: TrialSpec, run_job: RunJob, sender: Connection, log: Path) -> None:
    """The work of the trial's process."""
    os.setsid()
    with log.open("ab", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    said: tuple[str, Any, str]
    try:
        limit_memory(trial.memory)
        said = DONE, run_job(trial.job), ""
    except Exception as error:
        said = _status_and_reason(error)
    sender.send(said)
    sender.close()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(0)


def _status_and_reason(error: Exception) -> tuple[str, None, str]:
    """An error of the job as a status and a reason."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError) or any(
        words in text for words in ("can't allocate memory", "out of memory", "Cannot allocate")
    ):
        return NO_MEMORY, None, ""
    if isinstance(error, TrueloopError):
        return REFUSED, None, text
    return CRASHED, None, cut(f"{type(error).__name__}: {text}", 300)


def _killed(exit_code: int | None) -> str:
    # Nobody sends a SIGKILL here but the system, where its memory is at an end.
    return NO_MEMORY if exit_code == -signal.SIGKILL else CRASHED


def _of_status(exit_code: int | None) -> str:
    """How a process ended, in words."""
    if exit_code is None:
        return "it does not end"
    if exit_code >= 0:
        return f"exit status {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return "the system killed it (SIGKILL)" if name == "SIGKILL" else f"ended by {name}"


def _last_line(log: Path) -> str:
    with suppress(OSError):
        lines = log.read_bytes()[-4000:].decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f": {cut(last, 300)}" if last else ""
    return ""

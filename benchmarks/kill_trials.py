"""A run in a process of its own, killed and resumed until it ends, and compared with one that was
left alone.

Processes are forked, so that importing torch is paid for once: the caller must not have computed
with torch on more than one thread. Everything that a run consists of is built in the fork.
"""

from __future__ import annotations

import mmap
import os
import random
import re
import shutil
import signal
import struct
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch._dynamo  # loaded by seed_everything, in a second that every fork would pay
from kill_cases import CASES
from torch import Tensor

from trueloop import Checkpoints, Run, fit, load_checkpoint, seed, seed_everything
from trueloop.checkpoint import has_checkpoint, store

STAGES = (
    "folder made", "state written", "state flushed", "manifest written", "manifest flushed",
    "renamed", "done",
)  # fmt: skip
_CLOCKS = re.compile(rb',"(time|seconds)":[^,}]+')
_TRIES = 20


class Aim(NamedTuple):
    """Where in its writing of checkpoints a process kills itself."""

    stage: str
    write: int
    """Which write, from 1."""


class Marks:
    """How far writes have come, in memory that outlives the process that writes them."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4 * (len(STAGES) + 1))
        self._slots = memoryview(self._memory).cast("I")
        self.clear()

    def clear(self) -> None:
        self._slots[:] = memoryview(bytearray(self._slots.nbytes)).cast("I")

    def note(self, stage: str) -> int:
        """Count a stage reached; how often it was."""
        place = STAGES.index(stage)
        self._slots[place] += 1
        self._slots[-1] = place + 1
        return self._slots[place]

    def count(self, stage: str) -> int:
        return self._slots[STAGES.index(stage)]

    @property
    def last(self) -> str | None:
        """The stage reached last; None before the first."""
        return STAGES[self._slots[-1] - 1] if self._slots[-1] else None


def train(case: str, folder: Path, attempt: int, aim: Aim | None, marks: Marks) -> None:
    """Begin the run in `folder`, or go on with it, and leave `outcome.pt` there at its end."""

    def reached(stage: str) -> None:
        if Aim(stage, marks.note(stage)) == aim:
            os.kill(os.getpid(), signal.SIGKILL)

    store.reached = reached
    # A checkpoint that a kill has damaged is said in a warning; there must be none.
    warnings.simplefilter("error", RuntimeWarning)
    path = folder / "run"
    if has_checkpoint(path / "checkpoints"):
        run, state = Run(path), load_checkpoint(path / "checkpoints")
        seed_everything(1000 + attempt)  # what the checkpoint does not bring back will differ
    else:
        shutil.rmtree(path, ignore_errors=True)
        run, state = Run.create(path, config={"case": case}), None
        seed_everything(0)
    setup = CASES[case]()
    history = fit(
        setup.step,
        setup.train,
        setup.val,
        epochs=setup.epochs,
        updates=setup.updates,
        **setup.clock,
        metrics=setup.metrics,
        early_stop=setup.early_stop,
        run=run,
        checkpoints=Checkpoints(run.checkpoints, every=setup.every),
        resume_from=state,
        progress=False,
    )
    stop = setup.early_stop
    outcome = {
        **setup.step.state_dict(),
        "generators": seed.rng_state(),
        "early stopping": None if stop is None else stop.state_dict(),
        "best checkpoint": essence(load_checkpoint(run.checkpoints, "best")),
        "history": [history.status, history.best, history.best_epoch, history.best_update],
        "counts": [history.updates, history.samples, history.tokens, history.skipped],
        "scores": [record.scores for record in history.records],
        "places": [[record.epoch, record.update] for record in history.records],
    }
    torch.save(outcome, folder / "outcome.tmp")
    (folder / "outcome.tmp").rename(folder / "outcome.pt")


def essence(state: dict[str, Any]) -> dict[str, Any]:
    """What counts in the best checkpoint: a resume may take it at another place of its epoch."""
    return {name: state[name] for name in ("model", "epoch", "update", "scores")}


def in_fork(work: Callable[[], None], errors: Path) -> int:
    """Start `work` in a child that leads a session of its own; returns its process id.

    What it and its workers say on stderr goes to the file `errors`: the workers of a killed
    process end with a traceback of theirs.
    """
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 2)
        work()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def wait(child: int, kill_after: float | None = None) -> bool:
    """Wait for the child's end, killed after so many seconds; whether SIGKILL ended it.

    Raises `RuntimeError` if it failed, or has not ended within two minutes.
    """
    began, killed = time.perf_counter(), False
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        elapsed = time.perf_counter() - began
        if not killed and elapsed >= (120 if kill_after is None else kill_after):
            os.kill(child, signal.SIGKILL)
            killed = True
        time.sleep(0.0005)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # its workers would take seconds to notice
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        if killed and kill_after is None:
            raise RuntimeError("the run has not ended within two minutes")
        return True
    if status:
        raise RuntimeError(f"the run failed with status {status}")
    return False


@dataclass
class Reference:
    """The run left alone."""

    case: str
    outcome: dict[str, Any]
    log: list[bytes]
    writes: int
    """Checkpoints written."""
    seconds: float
    """From the process's start to its end."""

    @property
    def whole(self) -> dict[str, Any]:
        """All that a resumed run has to end with."""
        return {**self.outcome, "log": self.log}

    @classmethod
    def of(cls, case: str, folder: Path) -> Reference:
        """Measured twice: the two must agree, and the first may pay for what is loaded late."""
        first, again = cls._measured(case, folder), cls._measured(case, folder)
        if wrong := difference(first.whole, again.whole):
            raise RuntimeError(f"{case} is not the same run twice: {wrong}")
        return again

    @classmethod
    def _measured(cls, case: str, folder: Path) -> Reference:
        _empty(folder)
        marks, errors, began = Marks(), folder / "errors.txt", time.perf_counter()
        try:
            wait(in_fork(partial(train, case, folder, 0, None, marks), errors))
        except RuntimeError as error:
            raise RuntimeError(_with_text(error, errors)) from None
        seconds = time.perf_counter() - began
        return cls(case, outcome_in(folder), log_in(folder), marks.count("done"), seconds)


@dataclass
class Trial:
    """What became of one run that was killed."""

    kills: int = 0
    mid_write: list[str] = field(default_factory=list)
    """For each kill inside a write: the last stage that it had reached."""
    problem: str | None = None
    """What is not as in the reference; None if nothing."""


def trial(
    reference: Reference,
    folder: Path,
    chance: random.Random,
    stage: str | None,
    *,
    write: int | None = None,
    most: int = 4,
) -> Trial:
    """Kill a run and resume it, up to `most` times, until it ends; then compare.

    The first kill is at `stage` of one of its writes (number `write`, or any), or with None at any
    moment, as the others are. A kill that comes too late does not count: the trial begins again.
    """
    for _ in range(_TRIES):
        _empty(folder)
        aim = Aim(stage, write or chance.randint(1, reference.writes)) if stage else None
        found = _killed_run(reference, folder, chance, aim, chance.randint(1, most))
        if found.kills or found.problem:
            return found
    return Trial(problem=f"no kill has met the run in {_TRIES} tries")


def _killed_run(
    reference: Reference, folder: Path, chance: random.Random, aim: Aim | None, wanted: int
) -> Trial:
    found, marks, errors, had_checkpoint = Trial(), Marks(), folder / "errors.txt", False
    while True:
        moment = chance.uniform(0, reference.seconds) if found.kills < wanted else None
        child = in_fork(partial(train, reference.case, folder, found.kills, aim, marks), errors)
        try:
            killed = wait(child, None if aim else moment)
        except RuntimeError as error:
            found.problem = f"after {found.kills} kills: {_with_text(error, errors)}"
            return found
        if not killed:
            break
        found.kills += 1
        if marks.last is not None and (aim or marks.last != STAGES[-1]):
            found.mid_write.append(marks.last)
        had_checkpoint |= marks.count("renamed") > 0
        if had_checkpoint and not has_checkpoint(folder / "run" / "checkpoints"):
            found.problem = f"kill {found.kills} took the last checkpoint with it"
            return found
        marks.clear()
        aim = None
    if found.kills:
        ended = {**outcome_in(folder), "log": log_in(folder)}
        found.problem = difference(reference.whole, ended)
    return found


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def _with_text(error: BaseException, errors: Path) -> str:
    text = errors.read_text("utf-8") if errors.exists() else ""
    return f"{error}\n{text}".strip()


def outcome_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = torch.load(folder / "outcome.pt", weights_only=True)
    return found


def log_in(folder: Path) -> list[bytes]:
    """The log's lines without what the clock says."""
    raw = (folder / "run" / "metrics.jsonl").read_bytes()
    return _CLOCKS.sub(b"", raw).split(b"\n")


def difference(wanted: Any, found: Any, where: str = "run") -> str | None:
    """Where two nested values first differ, bit for bit; None if they do not."""
    if type(wanted) is not type(found):
        return f"{where}: {type(found).__name__} in place of {type(wanted).__name__}"
    if isinstance(wanted, Tensor):
        alike = (wanted.dtype, wanted.shape) == (found.dtype, found.shape)
        return None if alike and _bytes(wanted) == _bytes(found) else f"{where}: other values"
    if isinstance(wanted, dict):
        if list(wanted) != list(found):
            return f"{where}: {list(found)} in place of {list(wanted)}"
        pairs = [(f"{where}/{name}", wanted[name], found[name]) for name in wanted]
    elif isinstance(wanted, (list, tuple)):
        both = enumerate(zip(wanted, found, strict=False))
        pairs = [(f"{where}[{k}]", ours, theirs) for k, (ours, theirs) in both]
        pairs.append((f"{where} length", len(wanted), len(found)))
    elif isinstance(wanted, float):
        same = struct.pack("d", wanted) == struct.pack("d", found)
        return None if same else f"{where}: {found!r} in place of {wanted!r}"
    else:
        return None if wanted == found else f"{where}: {found!r} in place of {wanted!r}"
    return next((wrong for name, a, b in pairs if (wrong := difference(a, b, name))), None)


def _bytes(tensor: Tensor) -> bytes:
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()

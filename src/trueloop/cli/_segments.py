"""The runs that `trueloop verify-resume` compares, each trained in a separate process.

A resumed run has nothing but its checkpoint and its code: what one run leaves in memory must not
reach the next one, be it the state of a data set or of a module that the task imports.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from trueloop import ranks
from trueloop.checkpoint import load_checkpoint
from trueloop.cli import keep_libraries_quiet
from trueloop.cli._doctor import watched_session
from trueloop.cli._ranks import launched, together
from trueloop.cli._session import TrainingSession
from trueloop.cli._training import train
from trueloop.cli.options import VerifyOptions, settings_from
from trueloop.errors import ConfigError, RunError, TrueloopError
from trueloop.feed import BatchDataset
from trueloop.feed.tensors import is_arrays
from trueloop.loop.clock import updates_of_tokens
from trueloop.records import EvalRecord, StepRecord
from trueloop.run import Figures, Run
from trueloop.seed import rng_state

MOST_UPDATES = 200
"""Default number of updates of a verification; fewer if that is more than two epochs."""

_SLOW_IMPORTS = [__name__, "torch._inductor"]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One run, or one part of it: what a fresh process is asked to train."""

    task: str
    argv: list[str]
    """The options, as they were given."""
    here: Path
    """The directory that relative paths in the options start from."""
    folder: Path
    """The run directory; with `resume`, it contains the run to resume."""
    updates: int | None
    """Updates after which it ends; None for as many as suit the data."""
    stop: tuple[int, int] | None = None
    """Epoch and batch of the micro-batch after which it is stopped."""
    resume: bool = False
    launcher: dict[str, str] = field(default_factory=launched)
    """The variables that `torchrun` has set, for the process to meet its peers."""


class EndedError(RunError):
    """The process of a segment has ended without a word."""


@dataclass(frozen=True)
class MicroBatch:
    """The argument and the result of one call of the step, exactly."""

    epoch: int
    batch: int
    data: str
    """Digest of the batch's bytes."""
    rng: str
    """Digest of the global generators' states just before the forward."""
    loss: float
    grad_norm: float | None
    lr: float
    update: int
    ended: bool
    """It ended a window: an update was applied, or skipped."""


@dataclass
class Trace:
    """The events of a segment, micro-batch by micro-batch."""

    updates: int
    """Updates after which the segment was to end."""
    data: str
    """The kind of the training data: `arrays`, `samples`, `stream` or `loader`."""
    steps: list[MicroBatch] = field(default_factory=list)


def in_fresh_process(segment: Segment) -> Trace:
    """Train the segment in a new process, of each rank if there are several; what happened there.

    Raises what the training raised, on all ranks, and `RunError` if the process ended without a
    word.
    """
    said: Trace | Exception
    try:
        said = _trace_of_fresh_process(segment)
    except (TrueloopError, OSError, MemoryError) as error:
        said = error
    failure = said if isinstance(said, Exception) else None
    failures = [each for each in ranks.gathered(failure, "their runs") if each is not None]
    if failures:
        # Where one rank's training fails, the others end without a word.
        raise min(failures, key=lambda each: isinstance(each, EndedError))
    assert isinstance(said, Trace)
    return said


def _trace_of_fresh_process(segment: Segment) -> Trace:
    if sys.platform == "win32":
        context = multiprocessing.get_context("spawn")
    else:
        # One server imports slow modules and forks each segment; it never trains, nor uses a GPU.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_SLOW_IMPORTS)
    receiver, sender = context.Pipe(duplex=False)
    start_method = multiprocessing.get_start_method()
    process = context.Process(target=_answer, args=(segment, start_method, sender))
    process.start()
    sender.close()
    try:
        said = receiver.recv()
        process.join()
    except EOFError:
        process.join()
        raise EndedError(
            f"the training process ended unexpectedly (exit status {process.exitcode}): see its "
            f"output above, and check that trueloop train {segment.task} runs"
        ) from None
    except BaseException:
        process.kill()
        process.join()
        raise
    if isinstance(said, BaseException):
        raise said
    assert isinstance(said, Trace)
    return said


def _answer(segment: Segment, start_method: str, sender: Connection) -> None:
    """The work of a fresh process: train, and send the trace, or the error that is the user's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it reaches the parent, which ends this process
    os.chdir(segment.here)
    os.environ.update(segment.launcher)
    # Workers of the data set are to start as in `trueloop train`, not as this process was.
    multiprocessing.set_start_method(start_method, force=True)
    said: Trace | Exception
    try:
        with warnings.catch_warnings(), ExitStack() as stack:
            keep_libraries_quiet()
            if segment.launcher:
                stack.enter_context(together())
                # Asked after every update: the segment must end at the chosen one.
                ranks.Agreement.most_calls = 1
            said = train_segment(segment)
    except (TrueloopError, OSError, MemoryError) as error:
        said = error
    sender.send(said)


def train_segment(segment: Segment) -> Trace:
    """Train the segment in this process, in its main thread."""
    settings = settings_from(segment.task, segment.argv, run_options=VerifyOptions)
    # Under the doctor's eyes, as in `trueloop train`: the proof is of that.
    with watched_session(settings) as session:
        trace = Trace(_updates_to_train(session, segment.updates), _kind_of(session.splits.train))
        if segment.resume:
            run = Run(segment.folder)
            state = load_checkpoint(run.checkpoints, which="last")
        else:
            run = Run.create(segment.folder, config=session.settings.config(), environment={})
            state = None
        watch = _Watch(session, trace, segment.stop)
        train(session, run, Figures(run.path), others=[watch], resume_from=state)
    return trace


def _updates_to_train(session: TrainingSession, asked: int | None) -> int:
    if not session.train.has_length:
        return asked or MOST_UPDATES
    recipe = session.settings.recipe
    per_epoch = -(-len(session.train) // recipe.accumulate)
    total = recipe.updates
    if recipe.epochs is not None:
        total = per_epoch * recipe.epochs
    elif recipe.tokens is not None:
        total = updates_of_tokens(session.train, recipe.accumulate, recipe.tokens)
    if asked is not None and total is not None and asked > total:
        raise ConfigError(
            f"--updates {asked} is more than the {total} updates of the whole run: write "
            f"--updates {total} or less, or a larger --epochs"
        )
    return asked or min(2 * per_epoch, MOST_UPDATES, total or MOST_UPDATES)


def _kind_of(data: Any) -> str:
    if isinstance(data, DataLoader):
        return "loader"
    if is_arrays(data) or isinstance(data, BatchDataset):
        return "arrays"
    if isinstance(data, IterableDataset) or not hasattr(data, "__getitem__"):
        return "stream"
    return "samples"


class _Watch:
    """A sink that keeps the trace, and stops the run where it should end, as Ctrl-C would."""

    def __init__(
        self, session: TrainingSession, trace: Trace, stop: tuple[int, int] | None
    ) -> None:
        self._trace = trace
        self._stop = stop
        self._last = len(session.train) - 1 if session.train.has_length else None
        self._digests = ("", "")
        session.step.loss_fn = self._looking_at_batches(session.step.loss_fn)

    def _looking_at_batches(self, loss_fn: Callable[..., Any]) -> Callable[..., Any]:
        def watched(model: Any, batch: Any) -> Any:
            # Not in an evaluation; in a graph that is compiled there is nothing to look at.
            if torch.is_grad_enabled() and not torch.compiler.is_compiling():
                self._digests = digest(batch), digest(rng_state())
            return loss_fn(model, batch)

        return watched

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        if isinstance(record, StepRecord):
            self._trace.steps.append(_noted(record, *self._digests))
            self._digests = ("", "")
            if self._is_the_end(record):
                signal.raise_signal(signal.SIGINT)
        elif record.update is not None and record.update >= self._trace.updates:
            signal.raise_signal(signal.SIGINT)

    def _is_the_end(self, record: StepRecord) -> bool:
        if (record.epoch, record.batch) == self._stop:
            return True
        # An epoch's last update is followed by its evaluation, which belongs to the proof.
        enough = record.updated and record.update >= self._trace.updates
        return enough and record.batch != self._last


def _noted(record: StepRecord, data: str, rng: str) -> MicroBatch:
    return MicroBatch(
        epoch=record.epoch,
        batch=record.batch,
        data=data,
        rng=rng,
        loss=float(record.loss),
        grad_norm=None if record.grad_norm is None else float(record.grad_norm),
        lr=float(record.lr),
        update=record.update,
        ended=record.updated or record.skipped,
    )


def digest(value: Any) -> str:
    """A hash over every byte of the tensors, arrays and plain values in `value`."""
    found = hashlib.sha256()
    _absorb(found, value)
    return found.hexdigest()


def _absorb(found: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        found.update(f"{value.dtype}{tuple(value.shape)}".encode())
        found.update(_bytes(value))
    elif isinstance(value, np.ndarray):
        found.update(f"{value.dtype}{value.shape}".encode())
        found.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        for key, part in value.items():
            found.update(repr(key).encode())
            _absorb(found, part)
    elif isinstance(value, (list, tuple)):
        found.update(f"[{len(value)}".encode())
        for part in value:
            _absorb(found, part)
    elif isinstance(value, (str, bytes, int, float, complex, type(None))):
        found.update(repr(value).encode())
    else:
        # A batch class of the user's own: what it holds, not where it lies in memory.
        found.update(type(value).__qualname__.encode())
        _absorb(found, getattr(value, "__dict__", None))


def _bytes(tensor: Tensor) -> bytes:
    dense = tensor.detach() if tensor.layout is torch.strided else tensor.detach().to_dense()
    return dense.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()

"""fit: the loop around the step, to be read from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from time import monotonic
from typing import Any

from trueloop import metrics as metric_sets, ranks
from trueloop.checkpoint import Checkpoints, WriteError, place_of
from trueloop.checkpoint.lock import is_held_here
from trueloop.evaluation import EpochScores, as_feed
from trueloop.loop import clock, fit_arguments
from trueloop.loop.fit_state import FitState, History, Sink
from trueloop.loop.shown import progress_of
from trueloop.step import Step
from trueloop.step.open_windows import leave_open, warn_open_window
from trueloop.stopping import EarlyStopping, HangWatch, Stop, WaitInterrupted


def fit(
    step: Step,
    train: Any,
    val: Any = None,
    *,
    epochs: int | None = None,
    updates: int | None = None,
    tokens: int | None = None,
    eval_every: str | None = None,
    log_every: str | None = None,
    save_every: str | None = None,
    metrics: Any = None,
    run: Any = None,
    sinks: Sequence[Sink] = (),
    early_stop: EarlyStopping | None = None,
    checkpoints: Checkpoints | None = None,
    max_seconds: float | None = None,
    resume_from: dict[str, Any] | None = None,
    train_metrics: Any = None,
    gradients: bool = False,
    grace_seconds: float = 30.0,
    hang_minutes: float | None = None,
    hang_exit: bool = False,
    progress: bool = True,
) -> History:
    """Train: the loop of the README, with its records handed to `sinks` and to the log of `run`.

    Give one of `epochs`, `updates` and `tokens`. An interval is "500 updates", "10_000 samples",
    "1_000_000 tokens", "1 epoch" or "10 minutes", counted across epochs. On several ranks each
    calls `fit` with the same arguments. docs/loop.md has the details.

    Args:
        step: the `Step` to train with.
        train: a `Feed`, or what `Feed` takes in place of one: a `DataLoader`.
        val: the data to evaluate on, as `train`; None for no evaluation.
        epochs: passes over `train` in all, those before a resume included.
        updates: optimizer updates in all.
        tokens: tokens in all (`StepRecord.tokens`).
        eval_every: interval between evaluations; None: at each epoch's end.
        log_every: interval between lines of the log; None: each update.
        save_every: interval between checkpoints; None: as `checkpoints` has it.
        metrics: measured on `val`, see `evaluate`.
        run: a `Run`, whose directory gets the log and, at the end, the results; None for none.
        sinks: functions that get each `StepRecord` and `EvalRecord`, in this order.
        early_stop: ends the run when the score no longer improves, and loads the best weights.
        checkpoints: where and how states are saved; None for no checkpoints.
        max_seconds: the run ends after the first update beyond this time, and is saved.
        resume_from: a state of `load_checkpoint`, from which the run continues.
        train_metrics: measured on the outputs of the training itself, see `evaluate`.
        gradients: evaluate with graphs recorded, for a loss that differentiates.
        grace_seconds: how long after a signal (SIGINT, SIGTERM, SIGUSR1) the process is killed; the
            run ends after an update before that, and is saved.
        hang_minutes: after so long without progress each rank's stacks are written to `hangs` in
            the run directory; None adapts to the run, from 5 to 20 minutes.
        hang_exit: end the run after such a report, with status 1.
        progress: show the run's progress on standard error: a live line at a terminal, an output
            that is replaced in a notebook, lines elsewhere; of many ranks, rank 0 does.

    Returns:
        The evaluations, and how the run ended.

    Raises:
        ConfigError: before the first batch: an argument that cannot work.
        ScheduleError: before the first batch: the schedule does not end where the run does.
        NonFiniteError: a gradient is NaN or infinite, and the step has `nonfinite="stop"`.
        DataError: `train` or `val` is not a feed of batches, or yields none.
        RunError: the log or a checkpoint cannot be written, or `resume_from` does not fit.
        Interrupted: a second Ctrl-C, or no time left; a first one ends the run and returns.
    """
    fit_arguments.check_step(step)
    train, val = as_feed(train, "train"), None if val is None else as_feed(val, "val")
    length, sinks = clock.run_length(epochs, updates, tokens), fit_arguments.checked_sinks(sinks)
    fit_arguments.check_kinds(run, early_stop, checkpoints, resume_from, gradients, progress)
    intervals = fit_arguments.intervals(eval_every, log_every, save_every, run, checkpoints)
    clock.plan(step, train, length)
    given = {"the length of the run": str(length), **intervals}
    fit_arguments.check_alike(step, train, val, given, run, early_stop, checkpoints, resume_from)
    if not step.resumed:
        if step.is_accumulating:
            warn_open_window(step, "fit() starts without it")
        step.restart_epoch()
    step.stop_reason = None
    scoring = EpochScores(step, val, metric_sets.wrap(metrics), train_metrics, gradients)
    state = FitState(step, train, scoring, early_stop, checkpoints, intervals, length)
    with (
        Stop(max_seconds, grace_seconds=grace_seconds, asked=lambda: step.stop_reason) as stop,
        HangWatch(None if run is None else run.path, minutes=hang_minutes, exits=hang_exit),
        scoring.observed(),
        _opened(run, state, checkpoints, resume_from, sinks) as opened,
        progress_of(state, progress) as shown,
    ):
        try:
            return _train(state, stop, [*opened, *shown, *sinks])
        except BaseException as error:
            interrupted = stop.interruption(error)
            if interrupted is None:
                raise
            state.leave(interrupted)
            raise interrupted from None


def _train(state: FitState, stop: Stop, sinks: Sequence[Sink]) -> History:
    """The loop: epochs of steps, evaluated where that is due, until the run is as long as asked, or
    has come to its end before."""
    step, train, state.sinks, here = state.step, state.train, sinks, ranks.here
    if not step.model.training:
        step.model.train()
    state.evaluate_if_due(stop)  # of a state that was saved after an update and before this
    while not state.is_over(stop):
        batches = train.epoch(step.epoch, start=step.batch)
        # `here` is what the threads that watch the run read.
        here.phase, here.moved = "waiting for data", monotonic()
        try:
            for batch in batches:
                here.phase, here.moved = "training", monotonic()
                here.epoch, here.batch = step.epoch, step.batch
                record = step(batch, last=batches.last, stand_in=batches.stand_in)
                if record.outlier is not None:
                    record = state.with_samples(record)
                for sink in sinks:
                    sink(record)
                state.add(record, batches.last)
                if state.ends(stop):
                    break
                here.phase, here.update, here.moved = "waiting for data", step.updates, monotonic()
            else:
                here.phase = "training"
                state.end_epoch(stop)
        except WaitInterrupted:
            stop.is_due()
    return state.close(stop)


@contextmanager
def _opened(
    run: Any, state: FitState, saved: Checkpoints | None, resumed: Any, others: Sequence[Sink]
) -> Iterator[list[Any]]:
    """The run begun, and the sinks of a run directory, which is locked against other processes.

    However the run ends, they are closed, and no write is left under way. The log of a resumed run
    is cut back to where the state was saved: what was logged after that is trained, and logged,
    again.

    At the end the results are written, unless the caller holds the directory and writes its own.
    """
    ended, failure = False, None
    concludes = run is not None and not is_held_here(run.path)
    sinks: list[Any] = []
    with (
        nullcontext() if run is None else run.claimed(),
        nullcontext() if saved is None else saved.writing(),
    ):
        state.open(resumed)
        state.begin_sinks(others)
        try:
            if run is not None:
                by_line = state.clock.intervals[clock.LINE] is not None
                on_error = "stop" if saved is None else saved.on_error
                sinks += run.sinks(on_error=on_error, by_line=by_line)
            if resumed is not None:
                for sink in sinks:
                    epoch, batch, updates = place_of(state.step)
                    sink.truncate(updates, epoch, batch, state.history.records)
            yield sinks
            ended = True
        except BaseException as error:
            failure = error
            raise
        finally:
            leave_open(state.step)
            if saved is not None:
                saved.join()
            for sink in sinks:
                try:
                    sink.close()
                except WriteError:
                    if ended:  # else what has ended the run is the news
                        raise
            if concludes:
                with nullcontext() if ended else suppress(WriteError):
                    run.write_results(state.results(failure))

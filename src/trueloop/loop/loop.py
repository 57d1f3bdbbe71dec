"""fit: the loop around the step, to be read from top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from trueloop import _options, metrics as metric_sets, ranks
from trueloop.checkpoint import Checkpoints, WriteError, place_of
from trueloop.evaluation import EpochScores, as_feed
from trueloop.loop import arguments
from trueloop.loop.book import Book, History, Sink
from trueloop.step import Step
from trueloop.stopping import EarlyStopping, HangWatch, Stop


def fit(
    step: Step,
    train: Any,
    val: Any = None,
    *,
    epochs: int,
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
) -> History:
    """Train until `epochs` epochs are done: the loop of the README, with its records handed out.

    `train` and `val` are feeds or DataLoaders; `sinks` are callables that receive each
    `StepRecord` and each epoch's `EvalRecord`; `run` is a `trueloop.Run`, whose log becomes a
    sink. Train mode is set once at the start, unless the model already stands in it. Ctrl-C
    (SIGINT), SIGTERM or SIGUSR1 ends the run after the update at hand, with everything saved; a
    second one of them at once, by `KeyboardInterrupt`. If no update ends in the `grace_seconds`
    until the process is killed, the run stays as it was last saved. Where nothing moves for
    `hang_minutes`, stacks are written to `hangs` in the run directory (`HangWatch`).

    `epochs` counts those that the step has already done. `checkpoints` keeps the best and the last
    state; `resume_from` is a state of `last`, loaded with `load_checkpoint`. `early_stop` starts
    afresh, unless that state has its own. `max_seconds` ends the run after the first update beyond
    that time, evaluated and saved; the scores of an epoch cut short count as the best only if
    there are no others. The first epoch begins at its first batch, whatever the step has been
    called with before, unless it has loaded a state, or comes from a `fit` that was interrupted.

    `metrics` are measured on `val`, `train_metrics` (of the same kinds) on the training batches,
    from the outputs of the training's own forward: weights and dropout are those of that moment.
    `gradients` lets the evaluation record graphs, for a loss that differentiates.

    Every rank of several calls `fit` with the same arguments; see docs/many-ranks.md. Raises
    `ConfigError` and `ScheduleError` before the first batch, `NonFiniteError` during the run.
    """
    arguments.check_step(step)
    train, val = as_feed(train, "train"), None if val is None else as_feed(val, "val")
    epochs, sinks = _options.whole("epochs", epochs, 1, 10), arguments.checked_sinks(sinks)
    arguments.check_kinds(run, early_stop, checkpoints, resume_from, gradients)
    step.plan(epochs=epochs, batches=len(train) if train.has_length else None)
    arguments.check_alike(step, train, val, epochs, run, early_stop, checkpoints, resume_from)
    if not step.resumed:
        step.restart_epoch()
    scoring = EpochScores(step, val, metric_sets.wrap(metrics), train_metrics, gradients)
    book = Book(step, train, scoring, early_stop, checkpoints)
    with (
        Stop(max_seconds, grace_seconds=grace_seconds) as stop,
        HangWatch(None if run is None else run.path, minutes=hang_minutes, exits=hang_exit),
        scoring.observed(),
        _opened(run, book, epochs, resume_from) as opened,
    ):
        return _train(book, epochs, stop, [*opened, *sinks])


def _train(book: Book, epochs: int, stop: Stop, sinks: Sequence[Sink]) -> History:
    """The loop: epochs of steps, each evaluated, until `epochs` are done or `stop` is due."""
    step, train, book.sinks = book.step, book.train, sinks
    if not step.model.training:
        step.model.train()
    for epoch in range(step.epoch, step.epoch if book.is_over(stop) else epochs):
        batches = train.epoch(epoch, start=step.batch)
        for batch in stop.arriving(batches):
            ranks.here.move("training", epoch=epoch, batch=step.batch)
            book.tell(step(batch, last=batches.last, stand_in=batches.stand_in))
            if book.is_between_updates() and stop.is_due():
                break
        if stop.reason:
            book.save()  # inside an epoch: going on needs this state, not the one after it
        if stop.reason == "interrupted":
            break
        scores = book.evaluate(epoch, stop)
        if scores is None:
            book.save()  # after the epoch's last update: going on, the epoch is evaluated again
            break
        if stop.reason:
            break
        step.end_epoch(scores)
        book.end_epoch(scores)
        if step.epoch < epochs and book.should_stop(stop):
            break
    book.history.signal = stop.signal
    return book.close(stop.reason or "finished")


@contextmanager
def _opened(run: Any, book: Book, epochs: int, resumed: Any) -> Iterator[list[Any]]:
    """The book open, and the sinks of a run directory, which is held against other processes.

    However the run ends, they are closed, and no write is left under way. The log of a resumed run
    is cut back to where the state was saved: what was logged after that is trained, and logged,
    again.
    """
    saved, ended = book.checkpoints, False
    sinks: list[Any] = []
    with (
        nullcontext() if run is None else run.claimed(),
        nullcontext() if saved is None else saved.writing(),
    ):
        book.open(epochs, resumed)
        try:
            if run is not None:
                sinks += run.sinks(on_error="stop" if saved is None else saved.on_error)
            if resumed is not None:
                for sink in sinks:
                    epoch, batch, updates = place_of(book.step)
                    sink.truncate(updates, epoch, batch)
            yield sinks
            ended = True
        finally:
            if saved is not None:
                saved.join()
            for sink in sinks:
                try:
                    sink.close()
                except WriteError:
                    if ended:  # else what has ended the run is the news
                        raise

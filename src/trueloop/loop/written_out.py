"""The batches of a whole run, for a loop that is written out: across epochs, to its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trueloop.errors import ConfigError
from trueloop.feed import Feed
from trueloop.loop import clock, fit_arguments
from trueloop.step import Step


def batches(
    step: Step, train: Feed, *, epochs: int | None = None, updates: int | None = None
) -> Iterator[Any]:
    """The batches of a run, from where the step is to the run's end.

    `for batch in batches(step, train, updates=80): step(batch)` sets the step's plan, ends each
    epoch (`step.end_epoch()`) and stops after the update that completes the run. To resume, call
    it, load the states of `step` and `train`, and then iterate: it continues as the same run.

    Args:
        step: gets each batch, once, in the body of the loop.
        train: the feed.
        epochs: passes over `train` in all, those before a resume included.
        updates: optimizer updates in all, in place of `epochs`.

    Returns:
        An iterator of batches.

    Raises:
        ConfigError: not exactly one of `epochs` and `updates`, or not a `Step` and a `Feed`; while
            it runs: a batch was not given to the step.
        ScheduleError: the schedule does not end where the run ends.
    """
    fit_arguments.check_step(step)
    if not isinstance(train, Feed):
        raise ConfigError(
            f"batches() takes a Feed, and this is a {type(train).__name__}: write Feed(data, 64)"
        )
    clock.plan(step, train, clock.run_length(epochs, updates, None))
    return _batches(step, train, epochs, updates)


def _batches(step: Step, train: Feed, epochs: int | None, updates: int | None) -> Iterator[Any]:
    while not _is_over(step, epochs, updates):
        for batch in train.epoch(step.epoch, start=step.batch):
            place = step.epoch, step.batch
            yield batch
            if (step.epoch, step.batch) != (place[0], place[1] + 1):
                raise ConfigError(
                    "the step did not get the batch, and its place in the run is that of the "
                    "batches: call step(batch) once for each, without step.end_epoch(), which "
                    "batches() calls"
                )
            if updates is not None and step.updates >= updates:
                return
        step.end_epoch()


def _is_over(step: Step, epochs: int | None, updates: int | None) -> bool:
    if epochs is not None:
        return step.epoch >= epochs
    return updates is not None and step.updates >= updates

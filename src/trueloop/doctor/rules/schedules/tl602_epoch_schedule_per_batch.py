"""A schedule whose length is in epochs steps at every batch.

## What it does

Finds a schedule that steps inside the loop over batches although its length is in epochs: `T_max`
or `total_iters` is the number of epochs, milestones are within the number of epochs, or its decay
would reduce the learning rate to almost zero early in the run.

## Why it breaks training

The schedule ends after as many *batches* as it should take epochs. `StepLR` and `MultiStepLR` reach
a learning rate of almost zero within the first epoch, and the model stops learning;
`CosineAnnealingLR` oscillates every few batches instead of once per run. The loss falls at first
and then stays: this looks like a model that is too small.

## Wrong

```python
scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
for epoch in range(epochs):
    for inputs, targets in loader:
        ...
        optimizer.step()
        scheduler.step()
```

## Right

```python
scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
for epoch in range(epochs):
    for inputs, targets in loader:
        ...
        optimizer.step()
    scheduler.step()
```

Or keep `scheduler.step()` in the loop and make the schedule `epochs * len(loader)` steps long.

## Sources

- PyTorch, [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)
- PyTorch, [CosineAnnealingLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html):
  "T_max: Maximum number of iterations"; an iteration is a call of `step`.

## How it is detected

`scheduler.step()` is in a loop over batches, inside a loop over epochs, under no condition. Its
length is the same quantity as the length of the loop over epochs (of all phases together, where a
run goes through several), or an option with "epochs" in its name; or its numbers are too small for
anything else: `gamma` to the power of the number of decays in the run is below 1e-8, or all
milestones are within the number of epochs. A command-line option counts with its default. In a
program that was watched to its end: nothing is left of the learning rate of such a schedule, or of
a `LambdaLR`, before half of the batches. Not reported: loops with one update per iteration, calls
with an explicit (fractional) epoch, warm-ups of a constant length, and schedules of unknown length.
"""

from __future__ import annotations

from typing import Any

from trueloop.doctor.model.events import SchedulerStep
from trueloop.doctor.model.things import Scheduler
from trueloop.doctor.rules.shared import symbolic
from trueloop.doctor.rules.shared.schedule_clock import (
    ScheduleClock,
    ScheduleRule,
    batches_of,
    called,
    epochs_of,
    length_of,
    passes_of,
    where_to_step,
)
from trueloop.doctor.rules.shared.schedule_course import course_of

NOTHING = 1e-8
"""Share of the learning rate below which nothing is left of it."""
UPDATES = 500
"""Updates that a run makes at least, where their number is not known."""
BATCHES = 20
"""Batches of an epoch at least, where their number is not known."""
LATE = 150
"""A later milestone may be meant in updates, if the number of epochs is not known."""


_DECAYS = ("StepLR", "MultiStepLR", "ExponentialLR", "MultiplicativeLR", "LambdaLR")
"""Schedules without a length."""
SMALL = 400
"""More epochs than this may have few batches each, where their number is not known."""


class EpochSchedulePerBatch(ScheduleRule):
    code = "TL602"

    def check(self, clock: ScheduleClock) -> None:
        calls = clock.per_batch()
        if len(calls) < 2 or clock.twice() is not None or not clock.scheduler.known:
            return
        if clock.now_and_then(calls):
            return
        why = counted_in_epochs(clock, calls[0]) or gone_early(clock, calls[0])
        if not why:
            return
        loop = clock.batch_loop(calls[0])
        related = [(clock.scheduler.made, "sets its length")]
        if loop is not None:
            related.append((loop.place, "the loop over batches"))
        self.report(
            calls[0].place,
            f"{called(clock.scheduler)} steps at every batch, but {why}.",
            related=related,
            fix=f"{where_to_step(clock.scheduler, 'epoch')} its length in batches.",
        )


def counted_in_epochs(clock: ScheduleClock, call: SchedulerStep) -> str:
    """Why the schedule must be meant to step once per epoch; empty if that is not certain."""
    loop = clock.batch_loop(call)
    turns = clock.epoch_turns(call)
    if loop is None or not turns:
        return ""
    batches, epochs = batches_of(loop), epochs_of(turns)
    if symbolic.number(batches) == 1 or loop.cut_at == 1:
        return ""
    scheduler, kind = clock.scheduler, clock.scheduler.kind
    length = length_of(clock.scheduler)
    if length is not None:
        passes = passes_of(clock, call)
        return _by_length(clock, length.calls, length.written, batches, passes)
    counts = [count for each in epochs if (count := _count(each, scheduler.options)) is not None]
    run = _Run(max(counts, default=None), symbolic.number(batches))
    if kind == "LambdaLR":
        return _by_decay(scheduler.decay, 1, run)
    if kind in ("StepLR", "ExponentialLR"):
        size = _value(scheduler, "step_size") if kind == "StepLR" else 1
        return _by_decay(_value(scheduler, "gamma"), size, run)
    if kind == "MultiStepLR":
        return _by_milestones(_value(scheduler, "milestones"), _value(scheduler, "gamma"), run)
    if kind == "CosineAnnealingWarmRestarts":
        given = scheduler.arguments.get("T_0")
        period = symbolic.parse(given)
        if symbolic.number(period) is None and any(symbolic.same(period, each) for each in epochs):
            return f"T_0={given} is the number of epochs: it restarts far too early"
    return ""


def gone_early(clock: ScheduleClock, call: SchedulerStep) -> str:
    """Why the schedule must be meant to step once per epoch, from how it ran: nothing was left of
    the learning rate before half of the run; empty if that is not certain."""
    course = course_of(clock.scheduler)
    gone = course.gone_after() if course is not None else None
    if course is None or gone is None or clock.scheduler.kind not in _DECAYS:
        return ""
    counts = [symbolic.number(each) for each in epochs_of(clock.epoch_turns(call))]
    epochs = max((each for each in counts if each is not None), default=None)
    if clock.scheduler.kind == "LambdaLR" and epochs is not None and gone > epochs + 1:
        return ""  # it has a length, though not that one
    return f"after {gone} of {course.calls} batches nothing was left of the learning rate"


def _count(quantity: symbolic.Sum, options: dict[str, Any]) -> float | None:
    """A quantity as a number; of an option, what it is by default."""
    names = [factors[0].rpartition(".")[2] for factors in quantity if len(factors) == 1]
    default = options.get(names[0]) if len(names) == len(quantity) == 1 else None
    if isinstance(default, (int, float)) and 1.0 in quantity.values():
        return float(default)
    return symbolic.number(quantity)


def _value(scheduler: Scheduler, name: str) -> Any:
    """An argument; of an option, what it is by default."""
    value, default = scheduler.arguments.get(name), scheduler.option_defaults.get(name)
    return value if default is None or isinstance(value, (int, float)) else default


def _by_length(
    clock: ScheduleClock,
    length: symbolic.Sum,
    written: str,
    batches: symbolic.Sum | None,
    epochs: list[symbolic.Sum],
) -> str:
    if symbolic.counts_batches(length) or symbolic.same(length, batches):
        return ""
    constant = symbolic.number(length) is not None
    if constant and _is_warmup(clock):
        return ""
    if any(symbolic.same(length, each) for each in epochs):
        return f"{written} is the number of epochs, not of batches: the schedule ends far too early"
    if symbolic.counts_epochs(length):
        return f"{written} counts epochs, not batches: the schedule ends far too early"
    return ""


def _is_warmup(clock: ScheduleClock) -> bool:
    """A warm-up of a few updates may happen to be as long as there are epochs."""
    if clock.scheduler.kind == "LinearLR":
        arguments = clock.scheduler.arguments
        begin, end = arguments.get("start_factor"), arguments.get("end_factor")
        return begin is None or end is None or begin < end
    return clock.scheduler.kind == "ConstantLR"


class _Run:
    """How many updates the run makes, if known."""

    def __init__(self, epochs: float | None, batches: float | None) -> None:
        self.epochs = epochs
        self.batches = batches
        self.known = epochs is not None and batches is not None
        self.updates = float(UPDATES)
        if epochs is not None and batches is not None:
            self.updates = epochs * batches
        elif epochs is not None:
            self.updates = max(self.updates, epochs * BATCHES)


def _by_decay(gamma: object, size: object, run: _Run) -> str:
    if not isinstance(gamma, (int, float)) or not isinstance(size, int):
        return ""
    if not 0 < gamma < 1 or size < 1 or (run.epochs is not None and size > run.epochs):
        return ""
    if (size > SMALL and not run.known) or gamma ** (run.updates // size) >= NOTHING:
        return ""
    every = "every batch" if size == 1 else f"every {size} batches"
    return (
        f"multiplying the learning rate by {gamma:g} {every} brings it to almost zero long"
        " before the run ends"
    )


def _by_milestones(milestones: object, gamma: object, run: _Run) -> str:
    if not isinstance(milestones, list) or not milestones:
        return ""
    counted = [symbolic.parse(each) for each in milestones]
    if all(symbolic.counts_epochs(each) for each in counted):
        return "its milestones count epochs"
    numbers = [symbolic.number(each) for each in counted]
    known = [each for each in numbers if each is not None]
    if len(known) < len(numbers) or not isinstance(gamma, (int, float)) or not 0 < gamma < 1:
        return ""
    last = max(known)
    if last > (LATE if run.epochs is None else run.epochs):
        return ""
    if last > SMALL and not run.known:
        return ""
    if run.known and last * 4 > run.updates:
        return ""
    written = ", ".join(f"{each:g}" for each in known)
    return f"its milestones [{written}] count epochs, and are passed within the first few epochs"

"""A schedule whose length is in updates steps once per epoch.

## What it does

Finds a schedule that steps once per epoch although its length is in batches: `OneCycleLR` with
`steps_per_epoch`, or any schedule whose length contains `len(loader)`.

## Why it breaks training

The run ends before the schedule has moved. `OneCycleLR` stays in its warm-up, at a small fraction
of `max_lr`, and never comes down; a linear or cosine decay stays at its start. Training looks
healthy and ends too early: the last part of the schedule, where most of the accuracy is gained,
never comes.

## Wrong

```python
scheduler = OneCycleLR(optimizer, max_lr=0.1, epochs=epochs, steps_per_epoch=len(loader))
for epoch in range(epochs):
    for inputs, targets in loader:
        ...
        optimizer.step()
    scheduler.step()
```

## Right

```python
scheduler = OneCycleLR(optimizer, max_lr=0.1, epochs=epochs, steps_per_epoch=len(loader))
for epoch in range(epochs):
    for inputs, targets in loader:
        ...
        optimizer.step()
        scheduler.step()
```

`OneCycleLR(optimizer, max_lr=0.1, total_steps=epochs)` with one
`scheduler.step()` per epoch is consistent.

## Sources

- PyTorch, [OneCycleLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html):
  "The 1cycle learning rate policy changes the learning rate after every batch. `step` should be
  called after a batch has been used for training."
- Smith, Topin, [Super-Convergence](https://arxiv.org/abs/1708.07120)

## How it is detected

`scheduler.step()` is in a loop over epochs, outside of the loop over batches in which the optimizer
steps, under no condition, and the schedule's length, step size or a milestone is a number of
batches (it contains `len(loader)`, or is the product of the known numbers of batches and epochs).
In a program that was watched to its end: a length that is the number of its updates, a warm-up
(`LambdaLR`) or a `step_size` of hundreds of steps, which fits the number of updates and of which a
few epochs come to a small part. Not reported: epochs of a single batch, unknown lengths, schedules
that also step per batch, and loops that go over batches by their own words (`for i in
range(batch_count)`), with one over the parts of a batch inside.
"""

from __future__ import annotations

import re

from trueloop.doctor.model.events import SchedulerStep
from trueloop.doctor.model.things import Loop
from trueloop.doctor.rules.shared import symbolic
from trueloop.doctor.rules.shared.schedule_clock import (
    Length,
    ScheduleClock,
    ScheduleRule,
    batches_of,
    called,
    epochs_of,
    length_of,
    where_to_step,
)
from trueloop.doctor.rules.shared.schedule_course import course_of

_EPOCHS = 5
"""A run of fewer may be a trial."""
_OF_BATCHES = re.compile(r"batch|loader|iter")
_LENGTH_OF_LOADER = re.compile(r"\* ?len\([\w.]*loader\w*\)|len\([\w.]*loader\w*\) ?\*")
_SIZES = ("T_0", "step_size", "step_size_up", "T_max", "total_iters", "num_training_steps")


class BatchSchedulePerEpoch(ScheduleRule):
    code = "TL603"

    def check(self, clock: ScheduleClock) -> None:
        calls = clock.per_epoch()
        if len(calls) < 2 or clock.per_batch() or not clock.scheduler.known:
            return
        loop = loop_between(clock, calls[0])
        if loop is None or _goes_over_batches(clock.epoch_turns(calls[0])[-1].loop):
            return
        batches = batches_of(loop)
        if symbolic.number(batches) == 1:
            return
        why = (
            counted_in_batches(clock, calls[0], batches)
            or _hardly_moves(clock, batches)
            or self._counts_updates(clock)
        )
        if why:
            self.report(
                calls[0].place,
                f"{called(clock.scheduler)} steps once per epoch, but {why}: the run ends"
                " long before the schedule does.",
                related=[
                    (clock.scheduler.made, "sets its length"),
                    (loop.place, "the loop over batches in which it should step"),
                ],
                fix=f"{where_to_step(clock.scheduler, 'batch')} its length in epochs.",
            )

    def _counts_updates(self, clock: ScheduleClock) -> str:
        """Its length is the number of updates that the run has made, and it has stepped far less
        often."""
        length, course = length_of(clock.scheduler), course_of(clock.scheduler)
        if (
            length is None
            or course is None
            or {each.optimizer for each in self.steps} != {clock.scheduler.optimizer}
        ):
            return ""
        if self.updates is None or symbolic.number(length.calls) != self.updates:
            return ""
        if 2 * course.calls > self.updates:
            return ""
        return f"{length.written} is the number of updates of the whole run"


def _goes_over_batches(loop: Loop) -> bool:
    """By its own words: the loop inside goes over the parts of a batch (frames, segments)."""
    words = " ".join((str(loop.over), *loop.variables)).lower()
    return "epoch" not in words and _OF_BATCHES.search(words) is not None


def loop_between(clock: ScheduleClock, call: SchedulerStep) -> Loop | None:
    """The loop over batches with the optimizer steps between two scheduler steps."""
    turn = clock.epoch_turns(call)[-1]
    inside = [step for step in clock.steps if turn in step.turns]
    loops = [loop for step in inside if (loop := clock.batch_loop(step)) is not None]
    return loops[0] if len(loops) > 1 else None


def counted_in_batches(
    clock: ScheduleClock, call: SchedulerStep, batches: symbolic.Sum | None
) -> str:
    """Why the schedule must be meant to step at every update; empty if that is not certain."""
    kind, arguments = clock.scheduler.kind, clock.scheduler.arguments
    epochs = epochs_of(clock.epoch_turns(call))
    length = length_of(clock.scheduler)
    if kind == "OneCycleLR" and arguments.get("total_steps") is None:
        steps = symbolic.parse(arguments.get("steps_per_epoch"))
        if length is None or symbolic.number(steps) == 1:
            return ""
        if any(symbolic.same(length.calls, each) for each in epochs):
            return ""
        return f"its {length.written} plan one step per batch"
    if kind == "SequentialLR":
        for inner in clock.scheduler.schedules:
            why = counted_in_batches(ScheduleClock(inner, clock.made), call, batches)
            if why:
                return why
    if length is not None and _is_product(length.calls, batches, epochs):
        return f"{length.written} is the number of batches of the whole run"
    if length is not None and _is_written_in_batches(length, batches):
        return f"{length.written} counts batches"
    milestones = arguments.get("milestones")
    counted = [arguments.get(name) for name in _SIZES]
    counted += milestones if isinstance(milestones, list) else []
    for name, size in zip((*_SIZES, *["milestones"] * len(counted)), counted, strict=False):
        if symbolic.counts_batches(symbolic.parse(size)):
            return f"{name}={clock.scheduler.written.get(name) or size} counts batches"
    if length is not None and symbolic.counts_batches(length.calls):
        return f"{length.written} counts batches"
    return ""


def _hardly_moves(clock: ScheduleClock, batches: symbolic.Sum | None) -> str:
    """Why the schedule must be meant to step at every update, from how it ran: it has hardly begun
    at the end of the run; empty if that is not certain."""
    course, count = course_of(clock.scheduler), symbolic.number(batches)
    if course is None or count is None or course.calls < _EPOCHS:
        return ""
    updates = count * course.calls
    if clock.scheduler.kind == "LambdaLR":
        length = course.warm_up()
        if length is None or not max(100, 20 * course.calls) <= length <= updates:
            return ""
        return f"its warm-up takes {length:.0f} steps, and the run makes {updates:.0f} updates"
    if clock.scheduler.kind == "StepLR":
        size = clock.scheduler.arguments.get("step_size")
        if not isinstance(size, int) or not max(500, 50 * course.calls) <= size <= updates:
            return ""
        return f"step_size={size} is never reached, and the run makes {updates:.0f} updates"
    return ""


def _is_written_in_batches(length: Length, batches: symbolic.Sum | None) -> bool:
    """`epochs * len(self.loader)`, in a run that resumes, or is resumed: it has other epochs."""
    calls, each = symbolic.number(length.calls), symbolic.number(batches)
    whole = calls is not None and each is not None and each > 1 and calls % each == 0
    return whole and _LENGTH_OF_LOADER.search(length.written) is not None


def _is_product(
    length: symbolic.Sum, batches: symbolic.Sum | None, epochs: list[symbolic.Sum]
) -> bool:
    if batches is None:
        return False
    products = [symbolic.times(batches, each) for each in epochs if symbolic.number(each) != 1]
    return any(symbolic.same(length, each) for each in products)

"""One schedule steps both per batch and per epoch, or twice for one update.

## What it does

Finds a schedule whose `step()` is called in the loop over batches and again, in the same epoch,
outside of it. Also a schedule that steps twice, turn after turn, with no step of its optimizer in
between: the call is there twice, or it is in a loop over phases and runs after validation too.

## Why it breaks training

The schedule runs ahead of its plan: one that is counted in updates gains one step per epoch and, if
it is a `OneCycleLR`, raises an error at the end of the run; one that is counted in epochs ends
after a few batches. Two calls for one update halve the length of any schedule. It usually happens
when `scheduler.step()` is moved and the old call stays.

## Wrong

```python
for epoch in range(epochs):
    for inputs, targets in loader:
        ...
        optimizer.step()
        scheduler.step()
    scheduler.step()
```

## Right

```python
for epoch in range(epochs):
    for inputs, targets in loader:
        ...
        optimizer.step()
        scheduler.step()
```

## Sources

- PyTorch, [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)
- PyTorch, [OneCycleLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.OneCycleLR.html)

## How it is detected

In at least two epochs the same schedule steps inside and outside of the loop over batches, under
the same conditions. The call that does not fit the schedule's length is reported: by default, the
one per epoch. Two calls in one turn count where no step of the optimizer, and no code that cannot
be read, comes between them in at least two turns. Not reported: two schedules with separate units,
calls that depend on the kind of schedule or on an option, a warm-up per batch in the first epoch,
and calls with an explicit epoch or metric.
"""

from __future__ import annotations

from trueloop.doctor.model.events import EscapedToUnknown, SamplingGap, SchedulerStep
from trueloop.doctor.model.findings import Delete
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.schedules.tl602_epoch_schedule_per_batch import counted_in_epochs
from trueloop.doctor.rules.shared.schedule_clock import (
    ENOUGH,
    ScheduleClock,
    ScheduleRule,
    called,
)


class SchedulerStepsTwice(ScheduleRule):
    code = "TL608"

    def __init__(self) -> None:
        super().__init__()
        self._unseen: list[int] = []
        """Serial numbers of moments when an update may have been made that was not seen."""

    def on_sampling_gap(self, event: SamplingGap) -> None:
        self._may_update(event.serial)

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        if any(isinstance(thing, (Model, Optimizer)) for thing in event.things):
            self._may_update(event.serial)

    def _may_update(self, serial: int) -> None:
        if self.clocks and len(self._unseen) < 10 * ENOUGH:
            self._unseen.append(serial)

    def check(self, clock: ScheduleClock) -> None:
        both = clock.twice()
        if both is not None:
            self._report_both_clocks(clock, *both)
            return
        again = clock.without_update(self._unseen)
        if again is None:
            return
        first, second = again
        by_phase = first.place == second.place
        self.report(
            second.place,
            f"{called(clock.scheduler)} steps "
            + ("in each phase, also in one without updates" if by_phase else "here a second time")
            + ", with no step of its optimizer since the last one: the schedule runs twice as fast"
            " as planned.",
            related=[] if by_phase else [(first.place, "the first `step()` of the schedule")],
            fix="Step the schedule in the training phase only."
            if by_phase
            else "Keep one `scheduler.step()`.",
            remedies=[] if by_phase else [Delete(second.place)],
        )

    def _report_both_clocks(
        self, clock: ScheduleClock, batch: SchedulerStep, epoch: SchedulerStep
    ) -> None:
        wrong, right = (batch, epoch) if counted_in_epochs(clock, batch) else (epoch, batch)
        here = "at every batch" if wrong is batch else "at the end of the epoch"
        there = "once an epoch" if wrong is batch else "at every batch"
        self.report(
            wrong.place,
            f"{called(clock.scheduler)} steps here {here}, and also {there}: the schedule"
            " runs faster than planned.",
            related=[(right.place, "the other `step()` of the schedule")],
            fix="Keep one `scheduler.step()`: the one that matches the unit of its length.",
        )

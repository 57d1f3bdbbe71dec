"""One schedule steps both per batch and per epoch.

## What it does

Finds a schedule whose `step()` is called in the loop over batches and again, in the same epoch,
outside of it.

## Why it breaks training

The schedule runs ahead of its plan: one that is counted in updates gains one step per epoch and, if
it is a `OneCycleLR`, raises an error at the end of the run; one that is counted in epochs ends
after a few batches. It usually happens when `scheduler.step()` is moved and the old call stays.

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
one per epoch. Not reported: two schedules with separate units, calls that depend on the kind of
schedule or on an option, a warm-up per batch in the first epoch, and calls with an explicit epoch
or metric.
"""

from __future__ import annotations

from trueloop.doctor.rules.schedules.tl602_epoch_schedule_per_batch import counted_in_epochs
from trueloop.doctor.rules.shared.schedule_clock import ScheduleClock, ScheduleRule, called


class SchedulerStepsTwice(ScheduleRule):
    code = "TL608"

    def check(self, clock: ScheduleClock) -> None:
        both = clock.twice()
        if both is None:
            return
        batch, epoch = both
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

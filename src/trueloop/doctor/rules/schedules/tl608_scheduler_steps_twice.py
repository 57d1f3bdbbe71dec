"""One schedule ticks both per batch and per epoch.

## What it does

Finds a schedule whose `step` is called in the loop over batches and once more, in the same epoch,
outside of it.

## Why it breaks training

A schedule has one clock. With two it is ahead of its plan: a schedule counted in updates gains one
tick an epoch and, if it is a `OneCycleLR`, raises an error at the very end of the run; one that is
counted in epochs is over after a few batches. It usually comes from moving the tick and leaving the
old one behind.

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

In at least two epochs the same schedule ticks inside and outside of the loop over batches, both
under the same conditions. Two schedules with a clock each, ticks that depend on the kind of
schedule or on an option, a warm-up per batch in the first epoch, and ticks with an explicit epoch
or metric are silent. The tick that does not go with the schedule's length is the one that is
reported: by default that of the epoch.
"""

from __future__ import annotations

from trueloop.doctor.rules.schedules.tl602_epoch_schedule_per_batch import counted_in_epochs
from trueloop.doctor.rules.shared.schedule_clock import ScheduleClock, ScheduleRule, called


class SchedulerStepsTwice(ScheduleRule):
    code = "TL608"

    def judge(self, clock: ScheduleClock) -> None:
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

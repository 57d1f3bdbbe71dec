"""A schedule's length differs from the number of `scheduler.step()` calls in the run.

## What it does

Compares the length of a schedule with the number of its steps in the run, and reports a difference
of a factor of two or more: a total in micro-batches although it steps once per accumulated update,
a total in samples although it steps once per batch, the batches of one epoch for a run of several,
or a constant that does not fit the number of epochs.

## Why it breaks training

A schedule that is too long is cut off in the middle: the learning rate never comes down, which
costs the accuracy of the last part. One that is too short ends before the run: a linear decay
trains the rest with a learning rate of zero, and `CosineAnnealingLR` rises again, to its full
height at twice its length.

## Wrong

```python
total = len(loader) * epochs
scheduler = get_linear_schedule_with_warmup(optimizer, 0, total)
for i, batch in enumerate(loader):
    (loss_of(batch) / 4).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        scheduler.step()                 # total / 4 times
```

## Right

```python
total = len(loader) // 4 * epochs
scheduler = get_linear_schedule_with_warmup(optimizer, 0, total)
```

## Sources

- PyTorch, [CosineAnnealingLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.CosineAnnealingLR.html)
- PyTorch, [LinearLR](https://docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.LinearLR.html)
- Loshchilov, Hutter, [SGDR](https://arxiv.org/abs/1608.03983)

## How it is detected

Both numbers are known: as numbers in a program that is read from its start, or as products of the
same quantities (`len(loader) * args.epochs`). A total in samples is one of the loader's own data
set, `len(data) * epochs`, where a batch has several. The length of a `LambdaLR` is the quantity in
its function at which that comes down to its end. Steps are counted over the loops that contain
them, and once per window under `if (i + 1) % n == 0`, or after each list of the next n
batches; a loop over `permutation.split(size)` makes `len(permutation) // size` turns. A program
that was watched to its end shows by itself that a schedule is over: its steps are one and a half
(cosine) or two times its length, or nothing is left of a `LambdaLR`'s learning rate in the second
half. Not reported: schedules without a length (`StepLR`, `MultiStepLR`, `ExponentialLR`, warm
restarts), warm-ups that have ended, a run that may end early (`break`) or is one job's share of the
epochs (`range(start, start + budget)`), a computed length (`epochs // 2`), one missing last step of
OneCycle, a schedule that is replaced by a second one in the middle of the run, each as long as its
phase, and a function that collects learning rates for a plot and keeps nothing of the network that
it makes.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence

from trueloop.doctor.model.events import Event, Made, SchedulerStep
from trueloop.doctor.model.things import Loop
from trueloop.doctor.rules.schedules.tl602_epoch_schedule_per_batch import (
    counted_in_epochs,
    gone_early,
)
from trueloop.doctor.rules.schedules.tl603_batch_schedule_per_epoch import (
    counted_in_batches,
    loop_between,
)
from trueloop.doctor.rules.shared import symbolic
from trueloop.doctor.rules.shared.schedule_clock import (
    Length,
    ScheduleClock,
    ScheduleRule,
    batches_of,
    called,
    epochs_of,
    length_of,
)
from trueloop.doctor.rules.shared.schedule_course import course_of

_PLAIN = re.compile(r"(\w+=)?[\w.\[\]'\"]+")
_RANGE = re.compile(r"\brange\((\w*[A-Za-z_][\w.]*), (.*)")
"""The variable at which a range begins, and the rest."""
_LOW = 0.01
"""Share of a learning rate that is near zero."""
_COUNTS_MICRO_BATCHES = "this counts micro-batches, and it steps once per accumulated update"
FEW = 5
"""Runs with fewer steps are trials: their schedule may be that of the real run."""


class ScheduleLengthMismatch(ScheduleRule):
    code = "TL605"

    def check(self, clock: ScheduleClock) -> None:
        length = length_of(clock.scheduler)
        places = {call.place for call in clock.plain()}
        if length is None:
            self._check_function(clock, len(places))
            return
        if not clock.scheduler.known or clock.twice() is not None:
            return
        if len(places) != 1 or len(clock.plain()) != len(clock.calls) or len(clock.calls) < 2:
            return
        call = clock.calls[0]
        if not decays(clock):
            return
        successor = self._successor(clock)
        if successor is not None and any(turn.loop.simulated for turn in call.turns):
            self.refute(clock.scheduler.made)  # in runs that do not get to the second phase
        why = "" if _is_of_one_job(clock, call) else self._planned(clock, call, length, successor)
        why = why or _as_it_ran(clock, call, length)
        if why and (self.whole_program or symbolic.number(length.calls) is None):
            self.report(
                clock.scheduler.made,
                f"{called(clock.scheduler)} is planned for {length.written} steps, but {why}.",
                related=[(call.place, "steps the schedule")],
                fix="Set its length to the number of `scheduler.step()` calls in the run.",
            )

    def _planned(
        self, clock: ScheduleClock, call: SchedulerStep, length: Length, successor: Made | None
    ) -> str:
        if successor is None and self._counts_gathered(clock, call, length):
            return _COUNTS_MICRO_BATCHES
        if clock.batch_loop(call) is None:
            return _per_epoch(clock, call, length, successor)
        if successor is not None:
            return ""  # how many updates its phase has is not known
        accumulates = self._accumulates(clock, call)
        why = (_in_micro_batches if accumulates else _per_batch)(clock, call, length)
        return why or _window_by_window(clock, call, length)

    def _counts_gathered(self, clock: ScheduleClock, call: SchedulerStep, length: Length) -> bool:
        """It steps after a window of micro-batches, which a loop takes from a loader, and its
        length is the number of batches of that loader in all epochs."""
        inner = {
            turn.loop
            for event in self.backwards
            if event.turns[: len(call.turns)] == call.turns
            for turn in event.turns[len(call.turns) :]
        }
        window = inner.pop() if len(inner) == 1 else None
        if window is None or window.loader is None or not window.takes:
            return False
        batches = symbolic.parse(window.loader.length)
        several = isinstance(window.turns, int) and window.turns > 1
        if batches is None or not several or _ends_early(clock, call):
            return False
        epochs = epochs_of(clock.epoch_turns(call))
        return any(symbolic.same(length.calls, symbolic.times(batches, each)) for each in epochs)

    def _successor(self, clock: ScheduleClock) -> Made | None:
        """The schedule that the same `step()` advances later on: this one's phase of the run was
        over."""
        begun = clock.made.serial if clock.made is not None else 0
        places = {call.place for call in clock.calls}
        later = (
            other.made
            for other in self.clocks.values()
            if other.made is not None and other.made.serial > begun
            if any(call.place in places for call in other.calls)
        )
        return next(later, None)

    def _check_function(self, clock: ScheduleClock, places: int) -> None:
        """A schedule by a function, whose end only the learning rates show."""
        course = course_of(clock.scheduler)
        gone = course.gone_after() if course is not None else None
        if course is None or gone is None or clock.scheduler.kind != "LambdaLR":
            return
        if places != 1 or len(clock.plain()) != len(clock.calls) or clock.twice() is not None:
            return
        call = clock.calls[0]
        if clock.batch_loop(call) is not None and gone_early(clock, call):
            return
        self.report(
            clock.scheduler.made,
            f"The function of {called(clock.scheduler)} ends after {gone} steps, but the run made"
            f" {course.calls}: nothing was left of the learning rate for the rest of the run.",
            related=[(call.place, "steps the schedule")],
            fix="Set its length to the number of `scheduler.step()` calls in the run.",
        )

    def _accumulates(self, clock: ScheduleClock, call: SchedulerStep) -> bool:
        """Schedule and optimizer step in fewer iterations than have a `backward()`."""
        loop = clock.batch_loop(call)

        def turns(events: Sequence[Event]) -> set[int]:
            found = (turn for event in events for turn in event.turns)
            return {turn.index for turn in found if turn.loop is loop}

        called_in = turns(clock.calls)
        return (
            bool(called_in)
            and called_in == turns(clock.steps)
            and called_in < turns(self.backwards)
        )


def _as_it_ran(clock: ScheduleClock, call: SchedulerStep, length: Length) -> str:
    """The fault of a length that the run has passed long ago, however its loops are written."""
    course, planned = course_of(clock.scheduler), symbolic.number(length.calls)
    if course is None or planned is None or planned < 2 or counted_in_epochs(clock, call):
        return ""
    rises = clock.scheduler.kind == "CosineAnnealingLR"
    if course.calls < FEW or course.calls < (1.5 if rises else 2) * planned:
        return ""
    if rises:
        after = "the learning rate rises again"
    elif course.rates[-1][1] < _LOW:
        after = "the learning rate stays near zero"
    else:
        return ""
    return f"the run made {course.calls} steps: after the schedule's end {after}"


def decays(clock: ScheduleClock) -> bool:
    """It goes down over its whole length, so that its end should be the end of the run."""
    arguments, kind = clock.scheduler.arguments, clock.scheduler.kind
    if kind == "LinearLR":
        begin, end = arguments.get("start_factor"), arguments.get("end_factor")
        return begin is not None and end is not None and end < begin / 2
    if kind == "get_scheduler":
        return arguments.get("name") in ("linear", "cosine", "polynomial")
    return kind not in ("ConstantLR",)


def _in_micro_batches(clock: ScheduleClock, call: SchedulerStep, length: Length) -> str:
    loop = clock.batch_loop(call)
    batches = (batches_of(loop) or _pieces_of(loop)) if loop is not None else None
    if batches is None:
        return ""
    epochs = epochs_of(clock.epoch_turns(call)) or [{(): 1.0}]
    if any(symbolic.same(length.calls, symbolic.times(batches, each)) for each in epochs):
        return _COUNTS_MICRO_BATCHES
    windows = [symbolic.parse(window.size) for window in call.windows]
    if any(symbolic.number(each) == 1 for each in epochs) or _ends_early(clock, call):
        return ""
    updates = [symbolic.quotient(batches, each) for each in windows if each is not None]
    if clock.epoch_turns(call) and any(symbolic.same(length.calls, each) for each in updates):
        return "this counts the updates of one epoch, and it steps in every epoch"
    return ""


def _pieces_of(loop: Loop) -> symbolic.Sum | None:
    """Turns of a loop over `permutation.split(size)`."""
    return symbolic.parse(loop.parts[0]) if loop.parts is not None else None


def _window_by_window(clock: ScheduleClock, call: SchedulerStep, length: Length) -> str:
    """The run made one step for each window of micro-batches, which are as many as were planned,
    but for those that each epoch leaves over."""
    loop, course = clock.batch_loop(call), course_of(clock.scheduler)
    planned = symbolic.number(length.calls)
    if course is None or planned is None or course.calls < FEW or _ends_early(clock, call):
        return ""
    if any(turn.loop.begin_spelled for turn in clock.own(call)):
        return ""  # it may resume: not all of the planned updates are made here
    size = _usual_distance(clock.calls, loop)
    epochs = (symbolic.number(each) or 1 for each in epochs_of(clock.epoch_turns(call)))
    left_over = planned - size * course.calls
    fits = 0 <= left_over < size * math.prod(epochs, start=1.0)
    if size < 2 or not fits or planned < 1.5 * course.calls:
        return ""
    return _COUNTS_MICRO_BATCHES if _usual_distance(clock.steps, loop) == size else ""


def _usual_distance(events: Sequence[Event], loop: Loop | None) -> int:
    """The turns of a loop from one event to the next, most of the time; 0 where that varies. Turns
    that nobody looked at may be missing in between."""
    at = sorted({turn.index for each in events for turn in each.turns if turn.loop is loop})
    found = Counter(later - earlier for earlier, later in itertools.pairwise(at))
    size, times = max(found.items(), key=lambda each: each[1], default=(0, 0))
    return size if 2 * times > len(at) else 0


def _per_batch(clock: ScheduleClock, call: SchedulerStep, length: Length) -> str:
    """Ticks at every batch: the epochs may have been forgotten, or counted twice."""
    loop = clock.batch_loop(call)
    batches = batches_of(loop) if loop is not None else None
    turns = clock.epoch_turns(call)
    if loop is not None and _counts_samples(clock, call, length, loop):
        return "this counts samples, and it steps once per batch: the run ends long before that"
    if batches is None or not turns or _ends_early(clock, call):
        return ""
    epochs = epochs_of(turns)
    if any(symbolic.number(each) == 1 for each in epochs):
        return ""
    many = any((symbolic.number(each) or 0) > 1 or symbolic.counts_epochs(each) for each in epochs)
    alike = any(symbolic.same(batches, each) for each in epochs)
    each = 1 if loop is None or loop.simulated else _usual_distance(clock.calls, loop)
    if many and not alike and each < 2 and symbolic.same(length.calls, batches):
        return "this counts the batches of one epoch, and it steps in every epoch"
    if len(turns) > 1 or not epochs or symbolic.same(length.calls, epochs[0]):
        return ""
    for window in call.windows:  # it steps only in some of the batches
        size = symbolic.parse(window.size)
        if size is None:
            return ""
        batches = symbolic.quotient(batches, size)
    if each > 1:  # as it runs: once for each group of batches that a generator collects
        batches = symbolic.quotient(batches, {(): float(each)})
    total = symbolic.times(batches, epochs[0])
    goes_on = any(turn.loop.begin_spelled for turn in clock.own(call))  # in a run that resumes
    return "" if goes_on and _is_too_long(length, total) else _compared(clock, length, total)


def _counts_samples(clock: ScheduleClock, call: SchedulerStep, length: Length, loop: Loop) -> bool:
    """`epochs * len(data)` of the loader's data set, and not of a loader under the same name."""
    samples = symbolic.parse(loop.loader.samples) if loop.loader is not None else None
    if samples is None or symbolic.same(samples, batches_of(loop)) or _ends_early(clock, call):
        return False
    epochs = epochs_of(clock.epoch_turns(call)) or [{(): 1.0}]
    return any(symbolic.same(length.calls, symbolic.times(samples, each)) for each in epochs)


def _per_epoch(
    clock: ScheduleClock, call: SchedulerStep, length: Length, successor: Made | None
) -> str:
    turns = clock.epoch_turns(call)
    if symbolic.counts_batches(length.calls) or _ends_early(clock, call):
        return ""
    if not turns or successor is not None:
        phase = _phase(clock, call, successor)
        return _compared(clock, length, phase) if phase else ""
    inner = loop_between(clock, call)
    if inner is not None and counted_in_batches(clock, call, batches_of(inner)):
        return ""  # TL603 says so
    outer = turns[0].loop
    indices = [turn.index for each in clock.calls for turn in each.turns if turn.loop is outer]
    counts = [each.loop.turns for each in turns if isinstance(each.loop.turns, int)]
    if 1 < len(counts) == len(turns):
        # Several loops around a step, as of the updates of an epoch.
        total: symbolic.Sum = {(): float(math.prod(counts))}
        return _compared(clock, length, total) if _is_too_long(length, total) else ""
    if len(indices) != len(set(indices)) or (outer.simulated and len(indices) != outer.simulated):
        return ""
    epochs = symbolic.range_of(outer.turns)
    course = course_of(clock.scheduler)
    if course is not None and isinstance(outer.turns, int) and course.calls < outer.turns:
        return ""  # a different schedule has the other epochs: SWA
    return _compared(clock, length, epochs[0]) if epochs else ""


def _is_too_long(length: Length, calls: symbolic.Sum) -> bool:
    ratio = symbolic.ratio(length.calls, calls)
    return ratio is not None and ratio > 1


def _phase(
    clock: ScheduleClock, call: SchedulerStep, successor: Made | None
) -> symbolic.Sum | None:
    """How many epochs a schedule has that begins or ends within a loop over them, where the program
    runs."""
    epochs = next((turn.loop for turn in call.turns if turn.loop.kind == "epochs"), None)
    if epochs is None or epochs.simulated or len({each.turns for each in clock.calls}) < 2:
        return None

    def index(made: Made | None, otherwise: int) -> int:
        turns = made.turns if made is not None else ()
        return next((turn.index for turn in turns if turn.loop is epochs), otherwise)

    if not isinstance(epochs.turns, int):
        return None
    return {(): float(index(successor, epochs.turns) - index(clock.made, 0))}


def _ends_early(clock: ScheduleClock, call: SchedulerStep) -> bool:
    return any(turn.loop.leaves for turn in clock.own(call))


def _is_of_one_job(clock: ScheduleClock, call: SchedulerStep) -> bool:
    """The epochs are one job's share, and more jobs may follow: `range(start, start + budget)`."""
    for turn in clock.own(call):
        found = _RANGE.search(turn.loop.over)
        if found is not None and re.search(rf"(?<![\w.]){re.escape(found[1])}\b", found[2]):
            return True
    return False


def _compared(clock: ScheduleClock, length: Length, calls: symbolic.Sum | None) -> str:
    """The fault of a length, for a run with so many steps."""
    found = symbolic.ratio(length.calls, calls)
    count = symbolic.number(calls)
    if found is None or not _PLAIN.fullmatch(length.written):
        return ""
    written = f"{count:g}" if count is not None else symbolic.text_of(calls or {})
    if found >= 2 and (count is None or count >= FEW):
        return f"the run makes {written} steps: it ends long before the schedule does"
    if found <= 0.5 and clock.scheduler.kind != "OneCycleLR":
        rises = clock.scheduler.kind in ("CosineAnnealingLR", "SequentialLR")
        after = "the learning rate rises again" if rises else "the learning rate stays near zero"
        return f"the run makes {written} steps: after the schedule's end {after}"
    return ""

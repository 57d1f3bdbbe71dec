"""A schedule is created, but its `step()` is never called.

## What it does

Finds a learning-rate schedule whose optimizer trains while `scheduler.step()` is never called.

## Why it breaks training

The learning rate stays at its first value for the whole run. With a warm-up, which starts at zero
or at a fraction of the rate, the model hardly learns; otherwise the run misses the gain of the
decay. A log of `scheduler.get_last_lr()` is a flat line.

## Wrong

```python
scheduler = StepLR(optimizer, step_size=30)
for epoch in range(epochs):
    train(model, loader, optimizer)
```

## Right

```python
scheduler = StepLR(optimizer, step_size=30)
for epoch in range(epochs):
    train(model, loader, optimizer)
    scheduler.step()
```

## Sources

- PyTorch, [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)

## How it is detected

The program creates the schedule, its optimizer steps in at least two iterations of a loop after
that, and no path calls `scheduler.step()`. A schedule that only steps after the loop over epochs,
or only before it, counts too (unless it is given the epoch, `schedule.step(epoch)`); so does one
without a name, made in a statement of its own or under a
key of a dictionary. So does one whose only `step()` is under a test whether two texts are equal,
where both are settings of the program and differ: `if unit == config.unit:`, in a method that is
only called with "epoch", while the setting is "update". Not reported: schedules inside a
`SequentialLR` or `ChainedScheduler`, those passed to code that cannot be read (a trainer,
`accelerator.prepare`, the warm-up of a library), classes of the user's own with methods that may
set learning rates, schedules inside of such a class that steps, schedules that would change nothing
(`gamma=1`), schedules read with `get_lr()`, settings that switch a schedule off (`"none"`), files
that call `step` on anything of that name elsewhere, or have that call in a comment, and programs
that set the learning rate themselves (`group["lr"] = rate`) in more than the first epoch (under `if
step < warmup` they set it only for a warm-up). It is advice where a second schedule of the same
optimizer steps, or has that call in a comment: one of the two may be left over. Beside a warm-up it
stays a warning.
"""

from __future__ import annotations

from trueloop.doctor.model.events import Ended, Made, SchedulerStep
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import contents
from trueloop.doctor.model.optimizer_events import RateSet
from trueloop.doctor.model.things import Scheduler
from trueloop.doctor.rules.shared.schedule_clock import ENOUGH, ScheduleClock, ScheduleRule, called


class SchedulerNeverSteps(ScheduleRule):
    code = "TL606"

    def __init__(self) -> None:
        super().__init__()
        self._set: list[RateSet] = []
        self._never_stepped: dict[str, Location] = {}
        self._entries: frozenset[str] = frozenset()
        """Those that `step` is called on in any file that was read."""
        self._listed: set[object] = set()
        """In lists of the object whose method was read: a different method may go through them."""

    def on_ended(self, event: Ended) -> None:
        self._never_stepped, self._entries = event.never_stepped, event.stepped_entries - {""}
        lists = () if event.whole_program else event.handed_on
        self._listed = {part for each in lists for part in contents(each)}
        super().on_ended(event)

    def on_rate_set(self, event: RateSet) -> None:
        if len(self._set) < ENOUGH:
            self._set.append(event)

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        super().on_scheduler_step(event)
        for each in (event.scheduler, *event.scheduler.schedules):
            made = self.clock(each).made
            self.refute(each.made if made is None else _in_the_program(made))

    def check(self, clock: ScheduleClock) -> None:
        scheduler = clock.scheduler
        if clock.calls:
            self._check_steps(clock)
            return
        if clock.made is None or not scheduler.known or scheduler.exposed:
            return
        # A step under a name that is not known may be in code that was not read.
        is_followed = scheduler.name or scheduler.steps_are_seen or clock.made.dropped
        if scheduler.own_step or not is_followed or scheduler.optimizer is None:
            return
        if scheduler in self._listed:
            return
        if scheduler.read_by_hand or _is_flat(scheduler):
            return
        last = _last_name(scheduler)
        test = self._never_stepped.get(last) if self.whole_program else None
        stepped = scheduler.stepped_names | self._entries
        if last in stepped and test is None:
            return
        others = [each for each in self._others(scheduler) if _last_name(each) in stepped]
        # Whoever has a warm-up beside it wants both.
        left_over = bool(others) and not any(map(_warms_up, (scheduler, *others)))
        turns = {clock.own(step)[-1] for step in clock.steps if clock.own(step)}
        if len(turns) < 2:
            return
        by_hand = self._set_by_hand(clock)
        if _keeps_setting([each for each in by_hand if not each.at_first], clock):
            self.refute(scheduler.made)
            return
        name = scheduler.name or "scheduler"
        self.report(
            _in_the_program(clock.made),
            self._message(scheduler, under_a_test=test is not None, by_hand=bool(by_hand)),
            severity="advice" if left_over else None,
            related=[
                (clock.steps[0].place, "the optimizer steps here"),
                *([(test, "the test")] if test is not None else []),
            ],
            fix=(
                "In manual optimization the schedule is yours to step: call"
                " `self.lr_schedulers().step()`."
                if scheduler.stepped_by
                else f"Call `{name}.step()` after each `optimizer.step()`, or once per"
                " epoch, depending on the unit of its length."
            ),
        )

    def _message(self, scheduler: Scheduler, *, under_a_test: bool, by_hand: bool) -> str:
        optimizer = f"`{scheduler.optimizer.name}`" if scheduler.optimizer else ""
        optimizer = optimizer if len(optimizer) > 2 else "its optimizer"
        never = "only called under a test that is never true" if under_a_test else "never called"
        if self._others_step(scheduler):
            cost = f"its part of the schedule of {optimizer} never comes."
        elif by_hand:
            cost = f"the learning rate of {optimizer} stays where the program has set it."
        else:
            cost = f"{optimizer} trains with its initial learning rate for the whole run."
        return f"{called(scheduler)} is created, but its `step()` is {never}: {cost}"

    def _set_by_hand(self, clock: ScheduleClock) -> list[RateSet]:
        """The moments while it trains when the program itself sets the rate of its optimizer."""
        if self._others_step(clock.scheduler):
            return []
        loops = {turn.loop for step in clock.steps for turn in clock.own(step)}
        return [
            event
            for event in self._set
            if event.optimizer is clock.scheduler.optimizer
            and any(turn.loop in loops for turn in event.turns)
        ]

    def _others_step(self, scheduler: Scheduler) -> bool:
        """The same optimizer has a second schedule, and that one steps."""
        return any(self.clocks[each].calls for each in self._others(scheduler))

    def _others(self, scheduler: Scheduler) -> list[Scheduler]:
        """The other schedules of the same optimizer."""
        own = (each for each in self.clocks if each.optimizer is scheduler.optimizer)
        return [each for each in own if each is not scheduler]

    def _check_steps(self, clock: ScheduleClock) -> None:
        """The schedule steps, but only before or after the loop over epochs."""
        calls, steps = clock.calls, clock.steps
        if any(clock.own(call) for call in calls):
            for call in calls:
                self.refute(call.place)  # a step in the loop is optional
        if not (self.whole_program and steps and clock.scheduler.known) or len(steps) >= ENOUGH:
            return
        epochs = clock.epoch_turns(steps[-1])
        if any(clock.own(call) or not clock.free(call) for call in calls) or not epochs:
            return
        if calls[0].serial > steps[-1].serial and not epochs[-1].loop.leaves:
            when, other = "after the last", steps[-1]
        elif calls[-1].serial < steps[0].serial and len(calls) == 1 and calls[0].metric is None:
            when, other = "before the first", steps[0]
        else:
            return
        self.report(
            calls[0].place,
            f"{called(clock.scheduler)} steps only here, {when} epoch: the learning rate"
            " never changes while the model trains.",
            related=[(other.place, "its optimizer steps here")],
            fix="Move `scheduler.step()` into the loop over epochs.",
        )


def _last_name(scheduler: Scheduler) -> str:
    return scheduler.name.rpartition(".")[2]


def _warms_up(scheduler: Scheduler) -> bool:
    """It raises the learning rate in the first updates, as its class or its name says."""
    named = "warm" in f"{scheduler.name} {scheduler.kind}".lower()
    return named or scheduler.kind in ("LinearLR", "ConstantLR")


def _in_the_program(made: Made) -> Location:
    """Where a program gets its schedule: the call, where a function of a different file makes it,
    since other programs may step theirs."""
    caller = made.stack[-1] if made.stack else made.place
    function = made.place.function  # of an object, whose methods step it, or of none
    shared = bool(function) and "." not in function and caller.path != made.place.path
    return caller if shared else made.place


_FLAT = (
    {"div_factor": 1, "final_div_factor": 1},
    {"gamma": 1},
    {"factor": 1},
    {"start_factor": 1, "end_factor": 1},
)
"""Arguments with which a schedule never changes a learning rate."""


def _is_flat(scheduler: Scheduler) -> bool:
    return any(each.items() <= scheduler.arguments.items() for each in _FLAT)


def _keeps_setting(by_hand: list[RateSet], clock: ScheduleClock) -> bool:
    """Or may do so: it is not just a warm-up by hand that the schedule should follow."""
    later = any(turn.index > 0 for event in by_hand for turn in clock.own(event)[:1])
    if later or any(event.guards or event.rested for event in by_hand):
        return True
    return bool(by_hand) and by_hand[-1].serial > clock.steps[len(clock.steps) // 2].serial

"""A schedule controls an optimizer that no longer trains.

## What it does

Finds a schedule that keeps stepping although its optimizer does not: a different optimizer of the
same model makes the steps, usually one that was created later under the same name.

## Why it breaks training

A schedule has the optimizer object it was given. If `optimizer` is created again, for the second
phase of a fine-tuning or after the model was rebuilt, the schedule changes the learning rate of the
old object, and the new one keeps its own. A log of `scheduler.get_last_lr()` looks right;
`optimizer.param_groups[0]["lr"]` never changes.

## Wrong

```python
optimizer = Adam(model.parameters(), lr=1e-3)
scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
optimizer = SGD(model.parameters(), lr=0.1)
```

## Right

```python
optimizer = SGD(model.parameters(), lr=0.1)
scheduler = CosineAnnealingLR(optimizer, T_max=epochs)
```

## Sources

- PyTorch, [torch.optim: Constructing it](https://docs.pytorch.org/docs/stable/optim.html#constructing-it)
- PyTorch, [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate)

## How it is detected

In at least two iterations of a loop the schedule steps, its own optimizer does not step in any, and
a different optimizer with parameters of the same model does; or an optimizer of a different model
is the only one that trains there and has no schedule, while the schedule's optimizer trained
before. Also: the optimizer that trained is replaced by one with no schedule, inside the loop by one
of the same name or before the loop of a later phase, and the old schedule still steps. Not
reported: user-defined optimizers (SAM, Lookahead), those passed to code that cannot be read, and
pairs of optimizers of different models (GANs).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Made, OptimizerStep, SchedulerStep
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.things import Loop, Optimizer, Scheduler
from trueloop.doctor.rules.shared.schedule_clock import ScheduleClock, ScheduleRule, called


class SchedulerOfOtherOptimizer(ScheduleRule):
    code = "TL607"

    def __init__(self) -> None:
        super().__init__()
        self._made: dict[Optimizer, Made] = {}
        self._last: OptimizerStep | None = None
        """The last step of any optimizer."""
        self._trained: dict[Optimizer, set[Loop]] = {}
        """The loops in which each has stepped."""
        self._idle: dict[Scheduler, list[tuple[SchedulerStep, Optimizer]]] = {}
        """Ticks since a schedule's optimizer was replaced, and by which."""

    def on_made(self, event: Made) -> None:
        super().on_made(event)
        if isinstance(event.thing, Optimizer):
            self._made[event.thing] = event

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        super().on_optimizer_step(event)
        self._last = event
        self._trained.setdefault(event.optimizer, set()).update(turn.loop for turn in event.turns)
        for scheduler in [each for each in self._idle if each.optimizer is event.optimizer]:
            del self._idle[scheduler]

    def on_scheduler_step(self, event: SchedulerStep) -> None:
        super().on_scheduler_step(event)
        own, last = event.scheduler.optimizer, self._last
        if own is None or last is None or not event.guards <= last.guards:
            return
        made = self._made.get(last.optimizer)
        if made is None or not _replaces(last.optimizer, own):
            return
        around = {turn.loop for turn in event.turns} & {turn.loop for turn in made.turns}
        again = last.optimizer.name == own.name and around & self._trained.get(own, set())
        if again or self._is_later_phase(event, last):
            self._idle.setdefault(event.scheduler, []).append((event, last.optimizer))

    def _is_later_phase(self, event: SchedulerStep, last: OptimizerStep) -> bool:
        """The schedule has stepped in the loops that its own optimizer trained in, and now does in
        one that only the optimizer that came after trains in."""
        clock, own = self.clocks.get(event.scheduler), event.scheduler.optimizer
        trained = self._trained.get(own, set()) if own is not None else set()
        if clock is None or not trained:
            return False
        here = {turn.loop for turn in clock.own(event)}
        before = {turn.loop for turn in clock.own(clock.calls[0])}
        return (
            not before.isdisjoint(trained)
            and here.isdisjoint(trained)
            and any(turn.loop in here for turn in last.turns)
        )

    def _check_replaced(self, clock: ScheduleClock) -> None:
        """Its optimizer was replaced in the loop that it steps in."""
        scheduler = clock.scheduler
        ticks = self._idle.get(scheduler, [])
        own = scheduler.optimizer
        if not ticks or own is None or not _plain(own) or not scheduler.known or scheduler.exposed:
            return
        tick, other = ticks[0]
        # In source, the last of a few turns stands for all that follow.
        if len(ticks) < 2 and not tick.turns[0].loop.simulated:
            return
        if any(each.optimizer is other for each in self.clocks):
            return
        self.report(
            self._replaced_at(own, other),
            f"This optimizer replaces the one that {called(scheduler)} controls, and has no"
            " schedule: from here on its learning rate never changes.",
            related=[
                (scheduler.made, "the schedule of the optimizer before"),
                (tick.place, "steps it although its optimizer no longer trains"),
            ],
            fix="Create a new schedule for this optimizer here.",
        )

    def _replaced_at(self, own: Optimizer, other: Optimizer) -> Location:
        """Where the second is made; where both are made by one line, the call that leads there."""
        one, two = self._made.get(own), self._made.get(other)
        if one is None or two is None or one.place != two.place:
            return other.made
        calls = zip(reversed(one.stack), reversed(two.stack), strict=False)
        return next((second for first, second in calls if first != second), other.made)

    def check(self, clock: ScheduleClock) -> None:
        self._check_replaced(clock)
        scheduler, own = clock.scheduler, clock.scheduler.optimizer
        calls = [call for call in clock.calls if clock.own(call)]
        if own is None or not calls or not scheduler.known or scheduler.cls is not None:
            return
        loop = clock.own(calls[0])[0].loop
        if _steps_in(clock.steps, loop):
            self.refute(scheduler.made)
            return
        turns = {turn for call in calls for turn in call.turns if turn.loop is loop}
        others = [
            step
            for step in self.steps
            if not turns.isdisjoint(step.turns)
            and (_replaces(step.optimizer, own) or self._lacks_a_schedule(step.optimizer, own))
        ]
        stepped = {turn for step in others for turn in step.turns if turn.loop is loop}
        if len(stepped & turns) < 2 or not _plain(own) or scheduler.exposed:
            return
        other = others[0].optimizer
        name = own.name or "optimizer"
        again = "of the same name" if other.name == own.name else f"`{other.name}`"
        self.report(
            scheduler.made,
            f"{called(scheduler)} controls the optimizer `{name}`, which no longer trains."
            f" A different optimizer, {again}, makes the steps, and its learning rate"
            " never changes.",
            related=[
                (other.made, "the optimizer that trains"),
                (calls[0].place, "steps the schedule of the unused optimizer"),
            ],
            fix=(
                "Create the schedule after the optimizer that trains, and pass that optimizer"
                " to it."
            ),
        )

    def _lacks_a_schedule(self, other: Optimizer, own: Optimizer) -> bool:
        """It is the only one that trains here, nothing moves its learning rate, and it has nothing
        in common with `own`: the schedule was meant for it."""
        if other is own or not (_plain(other) and other.models and own.models):
            return False
        if any(clock.scheduler.optimizer is other for clock in self.clocks.values()):
            return False
        used = {step.optimizer for step in self.steps}
        return used <= {other, own} and own in used


def _steps_in(steps: list[OptimizerStep], loop: Loop) -> bool:
    return any(turn.loop is loop for step in steps for turn in step.turns)


def _plain(optimizer: Optimizer) -> bool:
    return optimizer.known and not optimizer.exposed and optimizer.cls is None


def _replaces(other: Optimizer, own: Optimizer) -> bool:
    """It trains what `own` was made for."""
    if other is own or not _plain(other):
        return False
    return any(other.trains(model) for model in own.models)

"""`scheduler.step()` comes before `optimizer.step()`: the first learning rate is skipped.

## What it does

Finds a schedule that steps before its optimizer in every iteration, from the first step on.

## Why it breaks training

A schedule sets its first learning rate when it is created, and the next one at each
`scheduler.step()`. Called first, it replaces the first value before anything was trained with it:
everything happens one step early. A warm-up from zero loses little; `StepLR` with a step size of
one epoch, or a cosine that ends with the run, loses a whole epoch at the highest learning rate and
trains the last one past its end. Before PyTorch 1.1 this was the right order, and much old code
still has it. Torch warns once, which is easily missed in a log.

## Wrong

```python
for epoch in range(epochs):
    scheduler.step()
    train(model, loader, optimizer)
```

## Right

```python
for epoch in range(epochs):
    train(model, loader, optimizer)
    scheduler.step()
```

## Sources

- PyTorch, [How to adjust learning rate](https://docs.pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate):
  "Learning rate scheduling should be applied after optimizer's update", and the note on the change
  in 1.1.0.

## How it is detected

In at least two iterations of the loop that contains it, `scheduler.step()` comes first and a step
of the same optimizer follows, and no optimizer step came before the first one. Not reported: calls
under a condition (`if epoch > 0:`), with an explicit epoch (`scheduler.step(epoch)`), or in a
separate loop (to restore a position), schedules whose `last_epoch` is set by hand, and those of
other libraries or of a fork of torch. Advice where the schedule steps at every batch, where a
learning rate stays the same for five steps or more (`StepLR`, `MultiStepLR`), and where a cosine
has 50 steps or more: nobody notices one step in many.
"""

from __future__ import annotations

from trueloop.doctor.model.events import OptimizerStep, SchedulerStep
from trueloop.doctor.model.findings import Location, Move, Remedy
from trueloop.doctor.model.things import Scheduler
from trueloop.doctor.rules.shared import symbolic
from trueloop.doctor.rules.shared.schedule_clock import ScheduleClock, ScheduleRule, called


class SchedulerBeforeOptimizer(ScheduleRule):
    code = "TL601"

    def check(self, clock: ScheduleClock) -> None:
        calls = clock.plain()
        scheduler = clock.scheduler
        if not scheduler.known or not calls or not clock.steps or calls[0] is not clock.calls[0]:
            return
        if clock.steps[0].serial < calls[0].serial or "last_epoch" in scheduler.attributes:
            return
        early: list[tuple[SchedulerStep, OptimizerStep]] = []
        stepped = {turn for step in clock.steps for turn in step.turns}
        # Of the loops around a tick, one may go over callbacks, or over several schedules.
        around = {turn.loop for call in calls for turn in call.turns if turn in stepped}
        own = ([t for t in clock.own(call) if t.loop in around] for call in calls)
        for turn in dict.fromkeys(turns[-1] for turns in own if turns):
            call = next(each for each in calls if turn in each.turns)
            step = next((each for each in clock.steps if turn in each.turns), None)
            if step is not None and step.serial < call.serial:
                return
            if step is not None:
                early.append((call, step))
        if len(early) < 2:
            return
        call, step = early[0]
        often = clock.batch_loop(call) is not None
        optimizer = step.optimizer.name or "optimizer"
        self.report(
            call.place,
            f"{called(scheduler)} steps before `{optimizer}`: {_effect(scheduler)} one step early.",
            related=[(step.place, "the optimizer's step")],
            fix=f"Call the scheduler's `step()` after `{optimizer}.step()`.",
            remedies=_move(call, step),
            severity="advice" if often or _stays(scheduler) or _is_slow(scheduler) else None,
        )


_LONG = 5
_SLOW = 50
"""Steps of a cosine, each of which moves the rate by 3% of the first one at most."""


def _effect(scheduler: Scheduler) -> str:
    if _stays(scheduler):
        return "every change of the learning rate comes"
    return "the schedule's first learning rate is skipped, and every later one is applied"


def _stays(scheduler: Scheduler) -> bool:
    """The first learning rate lasts several steps, or for as long as some option says."""
    kind, given = scheduler.kind, scheduler.arguments
    if kind == "StepLR":
        return _is_long(given.get("step_size"))
    if kind == "MultiStepLR":
        milestones = given.get("milestones")
        return not isinstance(milestones, list) or not milestones or _is_long(milestones[0])
    return False


def _is_slow(scheduler: Scheduler) -> bool:
    """A cosine of so many steps, perhaps by an option's default, that neighbours hardly differ."""
    if scheduler.kind != "CosineAnnealingLR":
        return False
    given = symbolic.number(symbolic.parse(scheduler.arguments.get("T_max")))
    length = scheduler.option_defaults.get("T_max") if given is None else given
    return isinstance(length, (int, float)) and length >= _SLOW


def _is_long(size: int | str | None) -> bool:
    number = symbolic.number(symbolic.parse(size))
    return number is None or number >= _LONG


def _move(call: SchedulerStep, step: OptimizerStep) -> list[Remedy]:
    """After the step; or after the whole loop over batches, if it steps once per epoch."""
    target: Location = step.place
    if len(step.turns) > len(call.turns):
        target = step.turns[len(call.turns)].loop.place
    here = call.place.path, call.place.function
    if not target.end_line or here != (target.path, target.function) or call.guards:
        return []
    return [Move(call.place, target, "after")] if call.guards == step.guards else []

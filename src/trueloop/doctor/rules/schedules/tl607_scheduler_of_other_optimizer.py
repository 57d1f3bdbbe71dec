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
before. Not reported: user-defined optimizers (SAM, Lookahead), those passed to code that cannot be
read, and pairs of optimizers of different models (GANs).
"""

from __future__ import annotations

from trueloop.doctor.model.events import OptimizerStep
from trueloop.doctor.model.things import Loop, Optimizer
from trueloop.doctor.rules.shared.schedule_clock import ScheduleClock, ScheduleRule, called


class SchedulerOfOtherOptimizer(ScheduleRule):
    code = "TL607"

    def check(self, clock: ScheduleClock) -> None:
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

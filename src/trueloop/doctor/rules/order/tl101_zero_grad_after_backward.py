"""Gradients are cleared after `backward()` and before the `step()` that needs them.

## What it does

Finds a `zero_grad()` of an optimizer, or of its model, between `backward()` and the `step()` that
should apply the gradients, with no other `backward()` after it.

## Why it breaks training

`step()` finds no gradients. With `set_to_none=True` (the default) it skips every parameter; with
zeros it applies only momentum and weight decay. Nothing raises and an epoch takes as long as usual,
but the loss stays at its initial value. With momentum it may drift, which looks like a learning
rate that is too small.

## Wrong

```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
```

## Right

```python
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    loss.backward()
    optimizer.step()
```

## Sources

- PyTorch, [Optimizing Model
  Parameters](https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html): zero
  the gradients, call `backward`, call `step`, in this order.
- PyTorch,
  [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html):
  what `set_to_none` means for the step that follows.

## How it is detected

The events of one optimizer are followed in order. It is a fault if a `zero_grad()` that covers all
its parameters comes after the last `backward()` that feeds them, and the next event is its
`step()`. A loop that sets every `p.grad` to None or zero counts, over `model.parameters()` or over
the parameters of all of the optimizer's groups. A running program does not show such a loop; there
it is a fault of one of torch's optimizers if gradients that `backward()` has left are gone, or all
zero, at three steps in a row. Not reported: gradients that may be restored in between (`p.grad =
...`, code that cannot be read), gradients that a different optimizer of the same parameters has
applied before, a `zero_grad()` under a condition that the step does not share (a skipped batch),
the two backward passes of SAM, correct closures, a `step` of the user's own that updates or takes
the gradients out before it clears, pairs of optimizers with separate parameters, and a
`zero_grad()` with the `backward()` of a new loss right after it, whose network an option has
chosen.
"""

from __future__ import annotations

from itertools import takewhile

from trueloop.doctor.model.events import (
    Backward,
    Event,
    GradRead,
    Made,
    ManualUpdate,
    ModelForward,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Move
from trueloop.doctor.model.measurements import GradientsLost
from trueloop.doctor.model.things import Optimizer
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    disjoint,
    has_parameters_of,
    inside,
    micro,
    named,
    same_turn,
    side_by_side,
    supplies,
)


class ZeroGradAfterBackward(StepRule):
    code = "TL101"

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        """Optimizers of the program."""
        self._cleared_by_call: set[Optimizer] = set()
        """Those before whose last step a call has cleared gradients."""

    def on_made(self, event: Made) -> None:
        self._made += isinstance(event.thing, Optimizer)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        found = self._cleared(event)
        if found is not None:
            self._report(event, *found)
        self._cleared_by_call.discard(event.optimizer)
        later = takewhile(
            lambda each: not isinstance(each, Backward), reversed(self.window(event.optimizer))
        )
        if any(isinstance(each, ZeroGrad) and not each.by_hand for each in later):
            self._cleared_by_call.add(event.optimizer)

    def on_gradients_lost(self, event: GradientsLost) -> None:
        if event.optimizer in self._cleared_by_call:
            return
        name = named(event.optimizer)
        self.report(
            event.place,
            f"The gradients that `backward()` has computed are gone when {name} steps: they were"
            " cleared by hand in between, and the step has none to apply.",
            fix="Clear the gradients before `backward()`, or after the step.",
        )

    def _cleared(self, step: OptimizerStep) -> tuple[Backward, ZeroGrad] | None:
        """The backward whose gradients the step should have had, and what cleared them."""
        optimizer, window = step.optimizer, self.window(step.optimizer)
        sources = [i for i, event in enumerate(window) if supplies(event, optimizer)]
        last = window[sources[-1]] if sources else None
        if not isinstance(last, Backward) or not self.feeds(last, optimizer):
            return None
        later = window[sources[-1] + 1 :]
        fed = [each for each in backwards(window) if same_turn(each, last)]
        clear = next(
            (
                event
                for event in later
                if isinstance(event, ZeroGrad)
                and all(self.erases(event, each, optimizer) for each in fed)
            ),
            None,
        )
        if clear is None or not clear.guards <= step.guards | last.guards:
            return None
        if not _one_stretch(last, clear) or _belongs_to_others(step, last, clear, later):
            return None
        if _is_by_option(clear, later):
            return None
        if last.create_graph and any(isinstance(event, Backward) for event in later):
            return None  # a later loss may go through these gradients: weights that a step has made
        if step.optimizer.own_step and any(_updates(event, optimizer) for event in later):
            return None
        if any(_is_applied(event, optimizer) for event in later[: later.index(clear)]):
            return None
        return last, clear

    def _report(self, step: OptimizerStep, backward: Backward, clear: ZeroGrad) -> None:
        name, window = named(step.optimizer, step.spelled), self.window(step.optimizer)
        remedies: list[Move] = []
        if self._made < 2 and side_by_side(clear, step):
            remedies = [Move(clear.place, step.place, "after")]
        else:  # after the step, the backward of a different loss would add to what is cleared
            first = next(each for each in backwards(window) if same_turn(each, backward))
            if side_by_side(clear, first):
                remedies = [Move(clear.place, first.place, "before")]
        self.report(
            clear.place,
            f"The gradients are cleared between `backward()` and the step of {name}: the"
            " step has no gradients to apply.",
            related=[
                (backward.place, "computes the gradients"),
                (step.place, "has no gradients to apply"),
            ],
            fix="Call `zero_grad()` before the forward pass"
            + (", or after the step." if self._made < 2 else "."),
            remedies=remedies,
        )


def _one_stretch(backward: Backward, clear: ZeroGrad) -> bool:
    """No new epoch begins between the two: a clearing and a step before a run's first batch are a
    way to quiet a schedule's warning."""
    turn = micro(backward)
    before = {id(each.loop): each.index for each in backward.turns if each != turn}
    return all(before.get(id(each.loop), each.index) == each.index for each in clear.turns)


def _is_by_option(clear: ZeroGrad, later: list[Event]) -> bool:
    """A new loss goes backward right after the clearing, through a network that an option has
    chosen: with others it is one that the optimizer trains."""
    at = later.index(clear)
    backwards_after = [each for each in backwards(later[at:]) if side_by_side(clear, each)]
    through = {serial for each in backwards_after if each.loss for serial in each.loss.forwards}
    return any(
        isinstance(event, ModelForward) and event.serial in through and event.guards - clear.guards
        for event in later
    )


def _updates(event: Event, optimizer: Optimizer) -> bool:
    """A `step` of the user's own has used the gradients before it clears them."""
    if isinstance(event, OptimizerStep):
        return not disjoint(event.optimizer, optimizer)
    return isinstance(event, ManualUpdate)


def _is_applied(event: Event, optimizer: Optimizer) -> bool:
    """The gradients were used before they are cleared: by a different optimizer that has the same
    parameters, or gathered by its own step."""
    if isinstance(event, GradRead) and optimizer.own_step:
        return not (event.logged or event.measured)
    if not isinstance(event, OptimizerStep):
        return False
    return any(has_parameters_of(optimizer, model) for model in event.optimizer.models)


def _belongs_to_others(
    step: OptimizerStep, backward: Backward, clear: ZeroGrad, later: list[Event]
) -> bool:
    """A different rule names the smaller move, or the order is that of a closure."""
    turn = micro(backward)
    if inside(clear, turn) and not inside(step, turn):
        return True  # TL107: the step left the loop
    if step.closure and len(clear.stack) <= len(step.stack):
        return True
    optimizer = step.optimizer
    return any(
        isinstance(event, ModelForward)
        and same_turn(event, step)
        and (has_parameters_of(optimizer, event.model) or not optimizer.models)
        for event in later
    )  # TL103: the step came before its backward

"""`step()` comes between a batch's forward pass and its `backward()`.

## What it does

Finds a `step()` after the forward pass of a batch and before the `backward()` of that batch's loss.

## Why it breaks training

The step applies the gradients that exist at that moment: those of the previous batch, or none if
`zero_grad()` ran at the top of the loop. In the first case every update is one batch late and
changes weights that the coming `backward()` still needs (torch often raises). In the second case
every gradient is computed and then cleared unused: the loss stays flat, and nothing raises.

## Wrong

```python
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = criterion(model(inputs), targets)
    optimizer.step()
    loss.backward()
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
  Parameters](https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html):
  `backward` deposits the gradients, then `step` adjusts the parameters by them.
- PyTorch,
  [torch.optim](https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step):
  "once the gradients are computed using e.g. backward()".

## How it is detected

A `step()` follows a forward pass of a model that the optimizer trains, in the same iteration, with
no gradient computed for that optimizer before it in the iteration (or all of it cleared again); and
the next `backward()` goes through that same forward pass. Not reported: a rotated loop (step,
clear, forward, backward), GANs whose generator runs before the discriminator's step, several losses
with one step each, and rollouts in reinforcement learning.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Clip,
    Event,
    ModelForward,
    OptimizerStep,
    Unscale,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Move
from trueloop.doctor.model.things import Optimizer
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    has_parameters_of,
    named,
    same_turn,
    side_by_side,
    supplies,
)


class StepBeforeBackward(StepRule):
    code = "TL103"

    def on_backward(self, event: Backward) -> None:
        batch = self._batch(event)
        events = self.timeline.events[-80:]
        steps = [each for each in events if type(each) is OptimizerStep and same_turn(each, batch)]
        turn = [each for each in events if same_turn(each, batch)] if steps else []
        for optimizer in self.timeline.optimizers if steps else ():
            step = self._early(turn, event, optimizer)
            if step is not None:
                self._report(step, event, turn)

    def _batch(self, backward: Backward) -> Event:
        """Where the batch is that a backward belongs to: after a loop it is the loop's last."""
        depth = len(backward.turns)
        for event in reversed(self.timeline.events[-80:]):
            if (
                backward.loss is not None
                and isinstance(event, ModelForward)
                and event.serial in backward.loss.forwards
            ):
                left = len(event.turns) > depth and event.turns[:depth] == backward.turns
                return event if left else backward
        return backward

    def _early(
        self, turn: list[Event], backward: Backward, optimizer: Optimizer
    ) -> OptimizerStep | None:
        """A step of the optimizer that came before this backward, and after its forward."""
        if backward.loss is None or not self.feeds(backward, optimizer):
            return None
        begun = next(
            (
                event.serial
                for event in turn
                if isinstance(event, ModelForward)
                and event.serial in backward.loss.forwards
                and (has_parameters_of(optimizer, event.model) or not optimizer.models)
            ),
            None,
        )
        if begun is None:
            return None
        is_fresh = False
        for event in turn:
            if supplies(event, optimizer):
                is_fresh = True
            elif isinstance(event, ZeroGrad) and self.clears(event, optimizer):
                is_fresh = False  # what a different loss (of a GAN) left there is gone
            elif (
                isinstance(event, OptimizerStep)
                and event.optimizer is optimizer
                and event.serial > begun
            ):
                is_sure = not is_fresh and not event.closure and event.guards <= backward.guards
                return event if is_sure else None
        return None

    def _report(self, step: OptimizerStep, backward: Backward, turn: list[Event]) -> None:
        name = named(step.optimizer, step.spelled)
        simple = step.scaler is None and side_by_side(step, backward)
        between = any(isinstance(event, (Clip, Unscale)) for event in turn)
        self.report(
            step.place,
            f"{name[:1].upper()}{name[1:]} steps before the `backward()` of this batch: it"
            " applies the gradients of the previous batch, or none.",
            related=[(backward.place, "computes the gradients of this batch")],
            fix="Call `step()` after `backward()`.",
            remedies=[Move(step.place, backward.place, "after")] if simple and not between else [],
        )

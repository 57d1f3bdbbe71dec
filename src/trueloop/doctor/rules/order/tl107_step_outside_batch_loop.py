"""Every batch clears the previous gradients, but `step()` runs once per epoch.

## What it does

Finds a `step()` after a loop over batches in which every iteration clears the gradients and calls
`backward()`.

## Why it breaks training

Each batch clears the gradients of the previous one: at the step only the last batch is left. An
epoch of a thousand batches makes one update from one batch. The loss falls a thousand times too
slowly, which looks like a learning rate that is too small. Usually `step()` lost one level of
indentation.

## Wrong

```python
for epoch in range(epochs):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
    optimizer.step()
```

## Right

```python
for epoch in range(epochs):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
```

## Sources

- PyTorch, [Optimizing Model
  Parameters](https://docs.pytorch.org/tutorials/beginner/basics/optimization_tutorial.html): the
  step is inside the loop over batches.
- PyTorch,
  [Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html):
  gradients accumulate until they are cleared.

## How it is detected

The step follows a loop that does not contain it; since its last step at least two `backward()`
calls of that loop fed the optimizer, with a certain `zero_grad()` between them in the loop, and
none came after the loop. Not reported: a full-batch gradient that is accumulated over the loop and
cleared once per epoch, inner loops of attacks that the real `backward()` follows, gradients that
are read or added up by hand, and a loop in which a different optimizer of these parameters steps.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Clip,
    GradEdited,
    GradRead,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Move
from trueloop.doctor.model.things import Loop, Optimizer, Turn
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    has_parameters_of,
    inside,
    may_change_gradients,
    micro,
    named,
)


class StepOutsideBatchLoop(StepRule):
    code = "TL107"

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        found = self._lost(event)
        if found is not None:
            self._report(event, *found)

    def _lost(self, step: OptimizerStep) -> tuple[ZeroGrad, Backward] | None:
        """The call that erases the batches before the last one, and the last one's backward."""
        optimizer, window = step.optimizer, self.window(step.optimizer)
        by_hand = any(
            isinstance(event, (GradRead, GradEdited)) or may_change_gradients(event, optimizer)
            for event in window
        )
        fed = [each for each in backwards(window) if self.feeds(each, optimizer)]
        turn = micro(fed[-1]) if fed else None
        if by_hand or step.closure or turn is None or not _left(step, turn):
            return None
        if self._steps_in(turn.loop, optimizer):
            return None
        # Of several losses that reach the same parameters, the one that came last.
        own = (each for each in fed if inside(each, turn) and each.place == fed[-1].place)
        first = next(own, fed[-1])
        for event in window:
            if (
                isinstance(event, ZeroGrad)
                and first.serial < event.serial < fed[-1].serial
                and inside(event, turn)
                and event.guards <= fed[-1].guards
                and self.erases(event, first, optimizer)
            ):
                return event, fed[-1]
        return None

    def _steps_in(self, loop: Loop, optimizer: Optimizer) -> bool:
        """A different optimizer of these parameters steps in the loop: the one before it."""
        return any(
            isinstance(each, OptimizerStep)
            and each.optimizer is not optimizer
            and any(turn.loop is loop for turn in each.turns)
            and any(has_parameters_of(each.optimizer, model) for model in optimizer.models)
            for each in self.timeline.events
        )

    def _report(self, step: OptimizerStep, clear: ZeroGrad, backward: Backward) -> None:
        name = named(step.optimizer, step.spelled)
        last = next(
            (each for each in self.timeline.events[::-1] if isinstance(each, (Clip, Backward))),
            backward,
        )
        near = (
            step.scaler is None
            and last.stack == step.stack
            and last.place.function == step.place.function
            and last.guards == step.guards
        )
        self.report(
            step.place,
            f"{name[:1].upper()}{name[1:]} steps once, after the loop, but every batch in"
            " the loop clears the gradients of the previous one: the model learns from"
            " the last batch only.",
            related=[
                (clear.place, "clears the gradients of the previous batch"),
                (backward.place, "computes gradients for every batch"),
            ],
            fix="Call `step()` inside the loop over batches, after `backward()`.",
            remedies=[Move(step.place, last.place, "after")] if near else [],
        )


def _left(step: OptimizerStep, turn: Turn) -> bool:
    """The loop over batches is over when the step comes."""
    return turn.loop.kind == "batches" and not inside(step, turn)

"""Gradients are clipped after the step that has applied them.

## What it does

Finds `clip_grad_norm_` or `clip_grad_value_` between an optimizer's `step()` and its `zero_grad()`.

## Why it breaks training

The step has already used the gradients, and `zero_grad()` discards them: clipping has no effect.
Training looks healthy until a batch with an exploding gradient comes. A log of the returned norms
even looks right.

## Wrong

```python
optimizer.zero_grad()
loss.backward()
optimizer.step()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
```

## Right

```python
optimizer.zero_grad()
loss.backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
optimizer.step()
```

## Sources

- PyTorch,
  [torch.nn.utils.clip_grad_norm_](https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.clip_grad_norm_.html):
  "Gradients are modified in-place".
- PyTorch, [Automatic Mixed Precision examples, gradient
  clipping](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-clipping): the
  call is between `backward` and the step.

## How it is detected

The call follows the step in the same iteration, or the loop that contains the step, covers
gradients of that optimizer, and they are cleared before the next `backward()` adds to them; no
clipping runs between `backward()` and the step. Not reported: an infinite or very large limit (it
measures), clipping for a different optimizer whose step is still to come, clipping when the
gradients of the step are cleared already, and a loop that clears nothing (TL102).
"""

from __future__ import annotations

from trueloop.doctor.model.events import Backward, Clip, Ended, Event, OptimizerStep, ZeroGrad
from trueloop.doctor.model.findings import Move
from trueloop.doctor.model.things import Optimizer
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    clears,
    same_turn,
    supplies,
)


class ClipAfterStep(StepRule):
    code = "TL105"

    def on_zero_grad(self, event: ZeroGrad) -> None:
        for optimizer in self.timeline.optimizers:
            may = clears(event, optimizer)
            if may or (may is None and self.alone(optimizer)):
                self._check(optimizer)

    def on_ended(self, event: Ended) -> None:
        """A function that makes one update and is called for each batch clears when it begins."""
        for optimizer in self.timeline.optimizers:
            step = self.last_step(optimizer)
            if step is None or step.turns:
                continue
            if any(
                isinstance(each, ZeroGrad)
                and self.clears(each, optimizer)
                and each.serial < step.serial
                and each.place.function == step.place.function
                and each.stack == step.stack
                for each in self.timeline.events
            ):
                self._check(optimizer)

    def _check(self, optimizer: Optimizer) -> None:
        step = self.last_step(optimizer)
        if step is None:
            return
        after = [each for each in self.window(optimizer) if each.serial > step.serial]
        if any(supplies(each, optimizer) for each in after):
            return
        late = [
            each
            for each in after
            if isinstance(each, Clip)
            and self.clips(each, optimizer)
            and (same_turn(each, step) or _after_the_loop(each, step))
            and not self._cleared_before(each, optimizer, after)
            and not self._is_for_different_optimizer(each, optimizer, after)
        ]
        if late and not self._clipped_before(step):
            self.report_clip(
                late[0],
                "runs after the step has applied the gradients, and they are cleared next: the"
                " clipping has no effect.",
                (step, "applies the unclipped gradients"),
                [Move(late[0].place, step.place, "before")] if step.scaler is None else [],
            )

    def _cleared_before(self, clip: Clip, optimizer: Optimizer, after: list[Event]) -> bool:
        """The gradients of the step may be gone when it clips: it belongs to what comes next."""
        return any(
            isinstance(each, ZeroGrad)
            and each.serial < clip.serial
            and clears(each, optimizer) is not False
            for each in after
        )

    def _is_for_different_optimizer(
        self, clip: Clip, optimizer: Optimizer, after: list[Event]
    ) -> bool:
        """A different optimizer that may have the clipped parameters has its step still to make."""
        return any(
            isinstance(each, OptimizerStep)
            and each.serial > clip.serial
            and each.optimizer is not optimizer
            for each in after
        )

    def _clipped_before(self, step: OptimizerStep) -> bool:
        """The gradients had been clipped when the step used them."""
        for event in reversed(self.timeline.events[: self.timeline.events.index(step)]):
            if self.may_clip(event, step.optimizer):
                return True
            if isinstance(event, Backward) and supplies(event, step.optimizer):
                return False
        return False


def _after_the_loop(clip: Clip, step: OptimizerStep) -> bool:
    """It runs once, after the loop that contains the step, and nothing reads the norm."""
    depth = len(clip.turns)
    left = step.turn is not None and len(step.turns) > depth
    return left and step.turns[:depth] == clip.turns and not clip.result_used and not clip.guards

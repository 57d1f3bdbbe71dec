"""Gradients are cleared on every micro-batch although the step comes every N-th.

## What it does

Finds a loop that accumulates gradients (a step every N-th turn) and clears them in every turn.

## Why it breaks training

Each clearing erases what the micro-batch before has computed: when the step comes, only the last
of N micro-batches is left. N - 1 of N batches are computed for nothing, and as the loss is
usually divided by N, the update is N times too small on top. Training runs N times slower than it
should, with the noise of a small batch.

## Wrong

```python
for i, (inputs, targets) in enumerate(loader):
    optimizer.zero_grad()
    (criterion(model(inputs), targets) / N).backward()
    if (i + 1) % N == 0:
        optimizer.step()
```

## Right

```python
for i, (inputs, targets) in enumerate(loader):
    (criterion(model(inputs), targets) / N).backward()
    if (i + 1) % N == 0:
        optimizer.step()
        optimizer.zero_grad()
```

## Sources

- PyTorch, [Automatic Mixed Precision examples, gradient
  accumulation](https://docs.pytorch.org/docs/stable/notes/amp_examples.html#gradient-accumulation):
  the clearing stands beside the step, inside the condition.
- PyTorch,
  [Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)

## How it is detected

The step comes every N-th turn of its loop (watched: in the same rhythm, twice); since the last
one the same `backward` ran in several turns of that loop, and a clearing that certainly covers its
gradients lies between two of them. Silent: networks that are updated every N-th batch with a
`backward` of their own (the critic of a GAN, delayed policies), clearing at the first micro-batch
of a window, batches skipped on a condition, and Accelerate's `accumulate`, which skips the clearing
by itself.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    Event,
    GradEdited,
    GradRead,
    ModelForward,
    OptimizerStep,
    ZeroGrad,
)
from trueloop.doctor.model.findings import Move
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    inside,
    meddles,
    micro,
    named,
    same_turn,
)


class ZeroGradInsideAccumulation(StepRule):
    code = "TL508"

    def on_grad_read(self, event: GradRead) -> None:
        self._write(event)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        prepared = event.optimizer.facts.get("prepared")
        rhythm = bool(event.windows) or self.every(event) is not None
        if rhythm and not event.closure and not prepared:
            found = self._erased(event, self.window(event.optimizer))
            if found is not None:
                self._tell(event, *found)
        super().on_optimizer_step(event)

    def _erased(self, step: OptimizerStep, window: list[Event]) -> tuple[ZeroGrad, Backward] | None:
        """What clears within the window of accumulation, and the backward that it robs."""
        optimizer, turn = step.optimizer, micro(step)
        by_hand = any(
            isinstance(event, (GradRead, GradEdited)) or meddles(event, optimizer)
            for event in window
        )
        fed = [each for each in backwards(window) if self.feeds(each, optimizer)]
        if by_hand or not fed or not inside(fed[-1], turn):
            return None
        last = fed[-1]
        if any(
            isinstance(event, ModelForward)
            and event.serial > last.serial
            and same_turn(event, step)
            for event in window
        ):
            return None  # the step came before the backward of its batch: TL103
        for earlier in fed[:-1]:
            if earlier.place != last.place or not inside(earlier, turn):
                continue
            if micro(earlier) == micro(last):
                continue
            for event in window:
                if (
                    isinstance(event, ZeroGrad)
                    and earlier.serial < event.serial < last.serial
                    and inside(event, turn)
                    and event.guards <= last.guards
                    and self.erases(event, earlier, optimizer)
                ):
                    return event, earlier
        return None

    def _tell(self, step: OptimizerStep, clear: ZeroGrad, backward: Backward) -> None:
        name = named(step.optimizer, step.spelled)
        near = (
            clear.stack == step.stack
            and clear.place.function == step.place.function
            and [each.loop for each in clear.turns] == [each.loop for each in step.turns]
            and clear.guards == step.guards
        )
        self.report(
            clear.place,
            f"The gradients are cleared at every micro-batch, but {name} steps only once"
            " per accumulated update: all micro-batches but the last are lost.",
            related=[
                (step.place, "steps once per accumulated update"),
                (backward.place, "computes gradients that are cleared"),
            ],
            fix="Call `zero_grad()` only when you step, after the step.",
            remedies=[Move(clear.place, step.place, "after")] if near else [],
        )

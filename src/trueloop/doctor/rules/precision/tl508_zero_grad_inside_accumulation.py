"""Gradients are cleared at every micro-batch, but the step comes every N micro-batches.

## What it does

Finds a loop that accumulates gradients (a step every N iterations) and clears them in every
iteration.

## Why it breaks training

Each `zero_grad()` clears the gradients of the previous micro-batch: at the step only the last of N
is left. N - 1 of N batches are computed for nothing, and because the loss is usually divided by N,
the update is also N times too small. Training is N times slower, with the noise of a small batch.

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
  `zero_grad()` is next to the step, inside the condition.
- PyTorch,
  [Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html)

## How it is detected

The step comes every N iterations of its loop (in a running program: at the same interval, twice);
since the last step the same `backward()` ran in several iterations, and a `zero_grad()` that
certainly covers its gradients is between two of them. Not reported: networks that are updated every
N batches with their own `backward()` (the critic of a GAN, delayed policies), optimizers that take
turns (a different one has stepped on the batch whose gradients are cleared), clearing at the first
micro-batch of an update, clearing every M iterations before something else (a validation), batches
skipped under a condition, and Accelerate's `accumulate`, in which a prepared optimizer skips its
clearing (`zero_grad()` of the model itself does not). It is advice where N is an option whose
default is 1.
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
from trueloop.doctor.model.things import Model, Optimizer, Tensor
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    accumulates_by_option,
    backwards,
    inside,
    may_change_gradients,
    micro,
    named,
    same_turn,
)


class ZeroGradInsideAccumulation(StepRule):
    code = "TL508"

    def on_zero_grad(self, event: ZeroGrad) -> None:
        """Inside of Accelerate's `accumulate` only a prepared optimizer skips its clearing."""
        if not event.accumulating or event.turn is None:
            return
        fed = [
            each
            for each in backwards(self.timeline.events)
            if each.by == "foreign" and same_turn(each, event) and event.guards <= each.guards
        ]
        if fed and _may_reach(fed[-1], event.target):
            self.report(
                event.place,
                "`accumulate` makes the optimizer skip its own `zero_grad()`, but not that of the"
                " model: the gradients are cleared at every micro-batch, and all but the last of"
                " each update are lost.",
                related=[(fed[-1].place, "computes gradients that are cleared")],
                fix="Call `zero_grad()` of the optimizer that `accelerator.prepare` returned.",
            )

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        prepared = event.optimizer.prepared
        rhythm = bool(event.windows) or self.every(event) is not None
        if rhythm and not event.closure and not prepared:
            window = self.window(event.optimizer)
            found = self._erased(event, window)
            if found is not None and (event.windows or _clears_each(found[0], window)):
                self._report(event, *found)

    def _erased(self, step: OptimizerStep, window: list[Event]) -> tuple[ZeroGrad, Backward] | None:
        """The call that clears within an accumulated update, and the backward of those
        gradients."""
        optimizer, turn = step.optimizer, micro(step)
        by_hand = [
            event.serial
            for event in window
            if isinstance(event, (GradRead, GradEdited)) or may_change_gradients(event, optimizer)
        ]
        fed = [each for each in backwards(window) if self.feeds(each, optimizer)]
        if not fed or not inside(fed[-1], turn):
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
                    and not any(earlier.serial < serial < event.serial for serial in by_hand)
                    and inside(event, turn)
                    and event.guards <= last.guards
                    and not _is_of_other_windows(event, step)
                    and self.erases(event, earlier, optimizer)
                    and not self._served_others(earlier, event, optimizer, window)
                ):
                    return event, earlier
        return None

    def _served_others(
        self, backward: Backward, clear: ZeroGrad, optimizer: Optimizer, window: list[Event]
    ) -> bool:
        """A different optimizer has stepped on the batch before: they take turns."""
        return any(
            isinstance(event, OptimizerStep)
            and event.optimizer is not optimizer
            and backward.serial < event.serial < clear.serial
            and self.feeds(backward, event.optimizer)
            for event in window
        )

    def _report(self, step: OptimizerStep, clear: ZeroGrad, backward: Backward) -> None:
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
            severity="advice" if accumulates_by_option(step) else None,
            remedies=[Move(clear.place, step.place, "after")] if near else [],
        )


def _clears_each(clear: ZeroGrad, window: list[Event]) -> bool:
    """The same line clears after each micro-batch, and not only before something else (live)."""
    clears = [each for each in window if isinstance(each, ZeroGrad) and each.place == clear.place]
    turns = {micro(each) for each in backwards(window)}
    return len({micro(each) for each in clears}) >= len(turns) - 1


def _is_of_other_windows(clear: ZeroGrad, step: OptimizerStep) -> bool:
    """It clears every n-th turn before something else: a validation."""
    sizes = {each.size for each in step.windows}
    return bool(clear.windows) and not any(each.size in sizes for each in clear.windows)


def _may_reach(backward: Backward, target: Optimizer | Model | Tensor | None) -> bool:
    """The gradients may be those of a model; where its forward was not read, they are."""
    models = backward.loss.models if backward.loss is not None else ()
    return not models or not isinstance(target, Model) or any(map(target.covers, models))

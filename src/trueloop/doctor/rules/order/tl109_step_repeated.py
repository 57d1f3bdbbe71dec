"""An optimizer steps twice on the same gradients.

## What it does

Finds a second `step()` of one optimizer, with no `backward()` and no `zero_grad()` since its first.

## Why it breaks training

`step()` leaves the gradients in `.grad`. A second `step()` applies them again, at weights that they
were not computed for. The update is twice as large, Adam's moments and step count advance twice,
and momentum counts the batch twice. A second step after the loop over batches applies the gradient
of the last batch once more in each epoch. Nothing raises: it acts like a learning rate that is too
large.

## Wrong

```python
for inputs, targets in loader:
    optimizer.zero_grad()
    criterion(model(inputs), targets).backward()
    optimizer.step()
optimizer.step()
```

## Right

```python
for inputs, targets in loader:
    optimizer.zero_grad()
    criterion(model(inputs), targets).backward()
    optimizer.step()
scheduler.step()
```

## Sources

- PyTorch,
  [torch.optim](https://docs.pytorch.org/docs/stable/optim.html#taking-an-optimization-step):
  `step()` is called "once the gradients are computed using e.g. backward()"
- PyTorch,
  [Optimizer.zero_grad](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html):
  gradients stay until they are reset

## How it is detected

A `backward()` feeds the optimizer, it steps, and it steps again, with nothing in between that may
compute, edit or clear its gradients or restore its weights. Not reported: closures, optimizer
classes with their own `step()` (SAM, Lookahead), a line search (a second step under a
condition, or after a forward pass in the same loop), steps of a list of optimizers, and a step that
gets new gradients in any other run of the program.
"""

from __future__ import annotations

from trueloop.doctor.model.events import (
    Backward,
    ManualUpdate,
    ModelForward,
    OptimizerStep,
    SamplingGap,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Delete
from trueloop.doctor.model.things import Loop, Optimizer
from trueloop.doctor.rules.order.tl102_missing_zero_grad import is_plain
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    has_parameters_of,
    named,
    relieves,
    same_turn,
    side_by_side,
    supplies,
)


class StepRepeated(StepRule):
    code = "TL109"

    def __init__(self) -> None:
        super().__init__()
        self._fed: dict[Optimizer, Backward] = {}
        """The backward whose gradients an optimizer applied last."""
        self._forward = self._restored = 0
        """Serial numbers of the latest forward, and of the latest weights that were put back."""
        self._again = 0

    def on_model_forward(self, event: ModelForward) -> None:
        self._forward = event.serial

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        self._restored = event.serial

    def on_manual_update(self, event: ManualUpdate) -> None:
        self._restored = event.serial

    def on_sampling_gap(self, event: SamplingGap) -> None:
        self._fed.clear()

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        optimizer = event.optimizer
        last, window = self.timeline.since_step(optimizer)
        if any(supplies(each, optimizer) or relieves(each, optimizer) for each in window):
            fed = [each for each in backwards(window) if self.feeds(each, optimizer)]
            self._fed.pop(optimizer, None)
            if fed:
                self._fed[optimizer] = fed[-1]
            if last is not None and last.place != event.place:
                self.refute(event.place)
            return
        backward = self._fed.get(optimizer)
        if last is None or backward is None or self._restored > last.serial:
            return
        if self._is_update(last, event) and self._is_repeated(last, event, backward):
            self._report(last, event, backward)

    def _is_update(self, last: OptimizerStep, step: OptimizerStep) -> bool:
        """Both are steps of torch's kind, of an optimizer that is certainly the same one."""
        if last.closure or step.closure or not is_plain(step.optimizer):
            return False
        if step.scaler is not None and last.scaler is None:
            return False  # TL503: the first one should go through the scaler
        if not step.optimizer.known and last.spelled != step.spelled:
            return False
        in_source = any(turn.loop.simulated for turn in step.turns)
        return bool(step.spelled and last.spelled) or not in_source

    def _is_repeated(self, last: OptimizerStep, step: OptimizerStep, backward: Backward) -> bool:
        if not step.guards <= last.guards or step.windows != last.windows:
            return backward.windows != () and step.place == last.place and not step.windows
        if step.place == last.place:
            loop = _turned(last, step)
            return loop is not None and self._is_again(loop, last, step, backward)
        if step.place in last.stack or last.place in step.stack:
            return False  # one within the other: an optimizer around a second one
        if step.conditional and not (last.conditional and side_by_side(last, step)):
            return False
        if last.turns and not step.turns and _is_whole_training(last.turns[0].loop):
            return False  # once, after all updates: one in many
        if len(step.turns) > len(last.turns) and self._forward > last.serial:
            return False  # in a loop of its own that looks at what the step did
        return not any(
            isinstance(each, ModelForward)
            and same_turn(each, step)
            and (has_parameters_of(step.optimizer, each.model) or not step.optimizer.models)
            for each in self.window(step.optimizer)
        )  # TL103: this is the step of the batch that has just gone forward

    def _is_again(
        self, loop: Loop, last: OptimizerStep, step: OptimizerStep, backward: Backward
    ) -> bool:
        """The same call in a later turn of a loop that computes no gradients in between."""
        name = step.spelled.partition(".")[0]
        if not loop.variables and loop.kind != "batches":
            return False  # `while`: as long as it helps
        if name in loop.variables or step.place.function != loop.place.function:
            return False
        if self._forward <= last.serial:
            return not step.conditional
        if backward.windows:
            return loop.kind == "batches"
        # Live: the backward is under a condition, and a loop over a loader is not a line search.
        self._again += loop.loader is not None and not loop.simulated
        return self._again > 2

    def _report(self, last: OptimizerStep, step: OptimizerStep, backward: Backward) -> None:
        name = named(step.optimizer, step.spelled)
        again = step.place == last.place
        after = len(step.turns) < len(last.turns) and not again
        meant = ", or call `scheduler.step()` if the schedule was meant" if after else ""
        related = [] if again else [(last.place, "applies these gradients already")]
        self.report(
            step.place,
            f"{name[:1].upper()}{name[1:]} steps again on gradients that it has already applied:"
            " the same update is made twice, as with a learning rate that is too large.",
            related=[(backward.place, "computes the gradients"), *related],
            fix=(
                "Step once after each `backward()`."
                if again
                else f"Remove this `step()`{meant}; one step follows each `backward()`."
            ),
            remedies=[] if again else [Delete(step.place)],
        )


def _is_whole_training(loop: Loop) -> bool:
    """It counts updates, and goes through no loader that each epoch goes through again."""
    return loop.counted or (not loop.simulated and loop.loader is None)


def _turned(last: OptimizerStep, step: OptimizerStep) -> Loop | None:
    """The loop that has turned between the two."""
    for mine, yours in zip(step.turns, last.turns, strict=False):
        if mine.loop is not yours.loop:
            return None
        if mine.index != yours.index:
            return mine.loop
    return None

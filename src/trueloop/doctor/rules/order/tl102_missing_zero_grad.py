"""An optimizer steps in every iteration, but its gradients are never cleared.

## What it does

Finds a loop in which an optimizer steps in every iteration after a `backward()`, and nothing clears
its gradients.

## Why it breaks training

`backward()` adds to `.grad`. Without `zero_grad()`, the gradient of step t is the sum over all
batches up to t, most of them computed at old weights. This acts like momentum 1 that never decays:
the loss falls at first, then oscillates or diverges, and a smaller learning rate only delays it.
Adam hides it, because it divides by the size of the gradient.

## Wrong

```python
for inputs, targets in loader:
    loss = criterion(model(inputs), targets)
    loss.backward()
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

- PyTorch, [Zeroing out
  gradients](https://docs.pytorch.org/tutorials/recipes/recipes/zeroing_out_gradients.html):
  gradients accumulate in `.grad` until they are zeroed.
- PyTorch,
  [Tensor.backward](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html):
  "This function accumulates gradients in the leaves".

## How it is detected

The same `step()` runs in two iterations of a loop, each after a `backward()` that feeds the
optimizer, or the same `backward()` runs before and after a step that comes every N iterations, or
an optimizer steps twice in an iteration with a `backward()` in between; and nothing in between may
clear the gradients: no `zero_grad()` of an optimizer or module that may share parameters, no
`p.grad = None`, no edit of `.grad` (clipping and `all_reduce` leave it what it is), no unknown code
that gets the optimizer. Not reported: a `zero_grad()` in a branch that only some runs take,
optimizer classes with their own `step()`, loops that make one turn unless an option says more, and
models that get the same inputs again, with one number in all places, which measures time or memory.
A function that receives its optimizer is checked only for its own loops. In a running program, the
gradients themselves are compared.
"""

from __future__ import annotations

import re
from collections import defaultdict

from trueloop.doctor.model.events import (
    Backward,
    EscapedToUnknown,
    Event,
    ModelForward,
    OptimizerStep,
)
from trueloop.doctor.model.findings import Insert, Location
from trueloop.doctor.model.things import Optimizer, Tensor
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    feeds,
    inside,
    micro,
    named,
    relieves,
    same_turn,
)
from trueloop.doctor.rules.shared.trials import is_trial

_TORCH_LIKE = re.compile(
    r"Adam|SGD|RMSprop|Adagrad|Adadelta|Adafactor|Lion|L[aA][mM][bB]|LARS|Ranger|Rprop|Shampoo"
    r"|Sophia|Muon|AdaBelief|DistributedOptimizer$"
)
_SO_CALLED = re.compile(r"optim|(^|[._])opt", re.I)


class MissingZeroGrad(StepRule):
    code = "TL102"

    def __init__(self) -> None:
        super().__init__()
        self._filled: set[Tensor] = set()
        """Inputs with one number in all places."""
        self._made_up: set[int] = set()
        """Forwards that get such inputs once more: time or memory is measured."""
        self._stepped: dict[Location, OptimizerStep] = {}
        """The latest step of a line."""
        self._side_by_side: dict[Location, set[Optimizer]] = defaultdict(set)
        """Optimizers that step at one line in one turn: `for each in optimizers: each.step()`."""
        self._reported: dict[Location, Optimizer] = {}

    def on_model_forward(self, event: ModelForward) -> None:
        tensors = [each for each in event.inputs if isinstance(each, Tensor)]
        if tensors and all(each.fill is not None for each in tensors):
            if self._filled.issuperset(tensors):
                self._made_up.add(event.serial)
            self._filled.update(tensors)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        last = self._stepped.get(event.place)
        if last is not None and last.optimizer is not event.optimizer and same_turn(last, event):
            self._side_by_side[event.place] |= {last.optimizer, event.optimizer}
        self._stepped[event.place] = event
        before = self.last_step(event.optimizer)
        if before is not None and _again(before, event):
            window = self.window(event.optimizer)
            if not any(relieves(each, event.optimizer) for each in window):
                if is_plain(event.optimizer):
                    self._suspect(event)
            elif _in_one_loop(before, event) and any(_may_have(each, event) for each in window):
                self._refute(event)
        elif before is not None and _in_one_turn(before, event):
            self._look_at_second(before, event)

    def _look_at_second(self, before: OptimizerStep, step: OptimizerStep) -> None:
        """A second step of one turn, after a new backward."""
        window = self.window(step.optimizer)
        if any(relieves(each, step.optimizer) for each in window):
            self._refute(step)
        elif is_plain(step.optimizer) and step.applied is None:
            fed = [each for each in backwards(window) if feeds(each, step.optimizer)]
            if fed:
                self._report_second(before, step, fed[0])

    def on_backward(self, event: Backward) -> None:
        """A window of micro-batches begins after the step that closed the one before."""
        for optimizer in self.timeline.optimizers:
            step = self.last_step(optimizer)
            if step is None or not step.windows or not _follows(step, event):
                continue
            if not is_plain(optimizer) or not self.feeds(event, optimizer):
                continue
            loop = [each for each in self.timeline.events if inside(each, micro(step))]
            if any(_steps_always(each, optimizer) for each in loop):
                continue  # a regularizer in some iterations, not the end of a window
            if any(_may_have(each, step) for each in (*loop, *self.window(optimizer))):
                self._refute(step)
            elif any(
                each.place == event.place and each.serial < step.serial for each in backwards(loop)
            ):
                self._report(step, event)

    def _refute(self, step: OptimizerStep) -> None:
        """Its gradients are cleared; those of an optimizer beside it may not be."""
        others = self._side_by_side[step.place] - {step.optimizer}
        if self._reported.get(step.place) not in others:
            self.refute(step.place)

    def _suspect(self, step: OptimizerStep) -> None:
        fed = [
            backward
            for backward in backwards(self.window(step.optimizer))
            if self.feeds(backward, step.optimizer) and inside(backward, micro(step))
        ]
        if fed and not self._measures(fed[0]):
            self._report(step, fed[0])

    def _measures(self, backward: Backward) -> bool:
        forwards = backward.loss.forwards if backward.loss is not None else frozenset()
        return bool(forwards) and forwards <= self._made_up

    def _report(self, step: OptimizerStep, backward: Backward) -> None:
        if is_trial(step):
            return
        self._reported[step.place] = step.optimizer
        if self._side_by_side[step.place] - {step.optimizer}:
            self.refuted.discard(step.place)
        name = named(step.optimizer, step.spelled)
        remedies = []
        if step.spelled and not step.closure:
            remedies = [Insert(f"{step.spelled}.zero_grad()", step.place, "after")]
        self.report(
            step.place,
            f"{name[:1].upper()}{name[1:]} steps in every iteration, but its gradients are"
            " never cleared: each update applies the sum of all gradients so far.",
            related=[(backward.place, "adds to the gradients that are already there")],
            fix="Call `zero_grad()` once per update, before `backward()` or after the step.",
            remedies=remedies,
        )

    def _report_second(
        self, before: OptimizerStep, step: OptimizerStep, backward: Backward
    ) -> None:
        name = named(step.optimizer, step.spelled)
        remedies = []
        if before.spelled and not before.closure:
            remedies = [Insert(f"{before.spelled}.zero_grad()", before.place, "after")]
        self.report(
            step.place,
            f"{name[:1].upper()}{name[1:]} steps a second time in this iteration, and its gradients"
            " are not cleared in between: the second update applies those of the first again.",
            related=[
                (before.place, "the first step"),
                (backward.place, "adds to the gradients that are already there"),
            ],
            fix="Call `zero_grad()` between the first step and this `backward()`.",
            remedies=remedies,
        )


def is_plain(optimizer: Optimizer) -> bool:
    """Its `step` is torch's: it does not clear by itself."""
    if optimizer.own_step:
        return False
    if optimizer.known:
        return True
    if optimizer.kind:
        return bool(_TORCH_LIKE.search(optimizer.kind.rpartition(".")[2]))
    return bool(_SO_CALLED.search(optimizer.name))


def _follows(step: OptimizerStep, backward: Backward) -> bool:
    """The backward is in a later turn of the step's loop."""
    mine, yours = micro(step), micro(backward)
    return (
        mine is not None
        and yours is not None
        and mine.loop is yours.loop
        and yours.index > mine.index
    )


def _again(before: OptimizerStep, step: OptimizerStep) -> bool:
    """The same step in a later turn: of this loop, or of the loops around it; not of one that
    makes a single turn unless an option says more."""
    return before.place == step.place and any(
        mine.loop is yours.loop and mine.index > yours.index and mine.loop.cut_at != 1
        for mine, yours in zip(step.turns, before.turns, strict=False)
    )


def _in_one_loop(before: OptimizerStep, step: OptimizerStep) -> bool:
    """Both belong to one pass over the batches: a clearing between them is the loop's own."""
    mine, yours = micro(step), micro(before)
    return mine is not None and yours is not None and mine.loop is yours.loop


def _steps_always(event: Event, optimizer: Optimizer) -> bool:
    return isinstance(event, OptimizerStep) and event.optimizer is optimizer and not event.windows


def _may_have(event: Event, step: OptimizerStep) -> bool:
    """It holds for other runs as well: code that got only the model, in a branch, does not."""
    if isinstance(event, EscapedToUnknown) and event.guards - step.guards:
        return any(thing is step.optimizer for thing in event.things)
    return relieves(event, step.optimizer)


def _in_one_turn(before: OptimizerStep, step: OptimizerStep) -> bool:
    """Two steps of one batch: one on each loss."""
    if before.closure or step.closure:
        return False
    return before.turns == step.turns and micro(step) is not None and before.place != step.place

"""All parameters of an optimizer, or of one of its groups, are frozen throughout.

## What it does

Finds an optimizer that steps while every parameter that it holds has `requires_grad=False`, and a
parameter group of which the same is true, through the whole training.

## Why it breaks training

A frozen parameter has no gradient, and `step()` skips what has none. The optimizer, or the group
with its own learning rate, trains nothing. It happens where a model is frozen and the
optimizer is made for a part of it, while the part that should learn (the new head) is in no
optimizer. Nothing raises as long as any other parameter requires a gradient.

## Wrong

```python
model.requires_grad_(False)
model.fc = nn.Linear(512, 10)
optimizer = torch.optim.SGD(model.layer4.parameters(), lr=0.01)
```

## Right

```python
model.requires_grad_(False)
model.fc = nn.Linear(512, 10)
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.01)
```

## Sources

- PyTorch, [Transfer learning
  tutorial](https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html): with a
  frozen network "only parameters of final layer are being optimized"
- PyTorch, [Autograd mechanics: setting
  requires_grad](https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad)

## How it is detected

At each step of an optimizer, every parameter of it, or of one group, is frozen. In source the whole
module is frozen unconditionally (`requires_grad_(False)`, or a loop over its `parameters()`) before
the first step, and nothing thaws or extends it later. Not reported: freezing for a phase, under an
option or by the parameters' names, models whose inside cannot be read or that are passed to code
that cannot be read, and optimizers that never step.
"""

from __future__ import annotations

import re
from collections import Counter

from trueloop.doctor.model.events import (
    Ended,
    EscapedToUnknown,
    FlagsSet,
    Made,
    OptimizerStep,
    Replaced,
)
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.evidence import called

_PARAMETERS = re.compile(r"[\w.\[\]]+\.parameters\(\)")


class OptimizerHoldsFrozenAlone(Rule):
    code = "TL309"

    def __init__(self) -> None:
        super().__init__()
        self._frozen: list[FlagsSet] = []
        """Events that freeze a whole module, and were not taken back."""
        self._born: dict[Model, int] = {}
        self._steps: Counter[Optimizer] = Counter()
        self._idle: dict[Optimizer, frozenset[int]] = {}
        """Groups that were frozen at every step."""
        self._gradual = False
        """The training loop thaws something: of its turns, the reader goes through a few."""

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Model):
            self._born[event.thing] = event.serial

    def on_flags_set(self, event: FlagsSet) -> None:
        if event.requires_grad is False and not event.guards and _is_whole(event):
            self._frozen.append(event)
        elif event.requires_grad is not False:
            self._thaw(event.model)
            self._gradual |= any(turn.loop.kind != "other" for turn in event.turns)

    def on_replaced(self, event: Replaced) -> None:
        if event.how != "assigned" or not isinstance(event.new, Model):
            self._thaw(event.model)  # a new module is known by when it was made

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        for thing in event.things:
            if isinstance(thing, Model):
                self._thaw(thing)

    def _thaw(self, model: Model) -> None:
        self._frozen = [each for each in self._frozen if not each.model.shares_parameters(model)]

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        optimizer = event.optimizer
        self._steps[optimizer] += 1
        idle = self._idle_groups(optimizer)
        self._idle[optimizer] = idle & self._idle.get(optimizer, idle)

    def _idle_groups(self, optimizer: Optimizer) -> frozenset[int]:
        if optimizer.frozen_groups is not None:
            return optimizer.frozen_groups
        return frozenset(
            number
            for number, models in enumerate(optimizer.groups or ())
            if optimizer.known and all(self._is_frozen(model) for model in models)
        )

    def _is_frozen(self, model: Model) -> bool:
        """It was frozen whole, and has got nothing new since, which only a model whose inside was
        read can show (`model.classifier[6] = ...`)."""
        return model.complete and any(
            each.model.covers(model)
            and all(self._born.get(part, 0) < each.serial for part in model.family())
            for each in self._frozen
        )

    def on_ended(self, event: Ended) -> None:
        for optimizer, idle in self._idle.items():
            idle &= self._idle_groups(optimizer)
            if self._gradual and optimizer.frozen_groups is None:
                continue
            if idle and self._steps[optimizer] > 1:
                self._report(optimizer, idle)

    def _report(self, optimizer: Optimizer, idle: frozenset[int]) -> None:
        count = max(idle) + 1 if optimizer.groups is None else len(optimizer.groups)
        name = called(optimizer, "the optimizer")
        whole = len(idle) == count and count == 1
        numbers = ", ".join(str(number) for number in sorted(idle))
        what = (
            f"All parameters of {name}" if whole else f"All parameters of group {numbers} of {name}"
        )
        freezes = [
            (each.place, "freezes them")
            for each in self._frozen
            for number in sorted(idle)
            if optimizer.groups and any(each.model.covers(m) for m in optimizer.groups[number])
        ]
        self.report(
            optimizer.made,
            f"{what} have `requires_grad=False` through the whole training: it trains nothing of"
            " them.",
            fix="Give it the parameters that should learn, or set `requires_grad_(True)` on these.",
            related=freezes[:1],
        )


def _is_whole(event: FlagsSet) -> bool:
    """It is one call, or the whole body of a loop over `parameters()`."""
    loop = event.turns[-1].loop if event.turns else None
    return event.whole or (
        loop is not None
        and event.place.function == loop.place.function
        and loop.lines == 1
        and _PARAMETERS.fullmatch(str(loop.over)) is not None
    )

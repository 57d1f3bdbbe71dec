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
module is frozen unconditionally (`requires_grad_(False)`, a loop over its `parameters()`, or one
over the `named_parameters()` of a model that tests names against constants or against what its
caller hands over, or one over its `parameters()` that tests whether each is in a set of those of
some parts, in a function that is called once) before the first step, and nothing thaws or extends
it later. Not reported: freezing for a phase or under an option, models whose inside cannot be read
or that are passed to code that cannot be read, and optimizers that never step.
"""

from __future__ import annotations

from collections import Counter

from trueloop.doctor.model.events import Ended, OptimizerStep
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.shared.evidence import called
from trueloop.doctor.rules.shared.frozen import FrozenModules


class OptimizerHoldsFrozenAlone(FrozenModules):
    code = "TL309"
    reads_names = True

    def __init__(self) -> None:
        super().__init__()
        self._steps: Counter[Optimizer] = Counter()
        self._idle: dict[Optimizer, frozenset[int]] = {}
        """Groups that were frozen at every step."""

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
            if optimizer.known and models and all(map(self._is_frozen, models))
        )

    def _is_frozen(self, model: Model) -> bool:
        """It was frozen whole, and has got nothing new since, which only a model whose inside was
        read can show (`model.classifier[6] = ...`)."""
        return model.complete and any(
            all(self.freezes(each, part) for part in model.family()) for each in self.frozen
        )

    def on_ended(self, event: Ended) -> None:
        for optimizer, idle in self._idle.items():
            idle &= self._idle_groups(optimizer)
            if self.gradual and optimizer.frozen_groups is None:
                self.refute(optimizer.made)  # one run comes to the turn that thaws, others do not
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
            for each in self.frozen
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

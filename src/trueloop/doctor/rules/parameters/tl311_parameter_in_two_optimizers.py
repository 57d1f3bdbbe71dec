"""Two optimizers apply the same gradient of the same parameter.

## What it does

Finds two optimizers that hold some of the same parameters and both step after one `backward()`.

## Why it breaks training

Each `step()` applies the gradient in `.grad`. A parameter that two optimizers hold is updated twice
per batch: its learning rate is the sum of both, its weight decay too, and each optimizer's momentum
or moments are computed for weights that the other one has moved. Often one of them got
`model.parameters()`, which includes the part that the other one was made for. Nothing raises: the
shared part learns faster than the rest, or diverges.

## Wrong

```python
opt_encoder = torch.optim.Adam(model.encoder.parameters(), lr=1e-4)
opt_decoder = torch.optim.Adam(model.parameters(), lr=1e-3)
for inputs, targets in loader:
    opt_encoder.zero_grad()
    opt_decoder.zero_grad()
    criterion(model(inputs), targets).backward()
    opt_encoder.step()
    opt_decoder.step()
```

## Right

```python
opt_encoder = torch.optim.Adam(model.encoder.parameters(), lr=1e-4)
opt_decoder = torch.optim.Adam(model.decoder.parameters(), lr=1e-3)
```

## Sources

- PyTorch, [torch.optim: per-parameter
  options](https://docs.pytorch.org/docs/stable/optim.html#per-parameter-options): different rates
  for parts of one model are groups of one optimizer
- PyTorch, [Optimizer](https://docs.pytorch.org/docs/stable/optim.html#torch.optim.Optimizer): a
  parameter in two groups of one optimizer is an error; between two optimizers nobody looks

## How it is detected

A `backward()` feeds both optimizers, and both step after it, with no other `backward()` and no
clearing in between. In source both must hold all parameters of a module that they share, and that
was there when they were made; in a running program the parameters with a gradient are compared. Not
reported: optimizers that share parameters and step each after its own backward, parameters that are
chosen by a test, and an optimizer around a second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trueloop.doctor.model.events import Backward, Event, Made, OptimizerStep, SamplingGap
from trueloop.doctor.model.optimizer_events import GroupAdded
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.order.tl102_missing_zero_grad import is_plain
from trueloop.doctor.rules.shared.evidence import called_as_part
from trueloop.doctor.rules.shared.own_parameters import has_parameters
from trueloop.doctor.rules.shared.step_order import (
    StepRule,
    backwards,
    named,
    relieves,
    share,
    supplies,
)


class ParameterInTwoOptimizers(StepRule):
    code = "TL311"

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[Optimizer, set[Model]] = {}
        """The modules of an optimizer as it was made: not those that were added to them later."""
        self._fed: dict[Optimizer, Backward] = {}
        """The backward whose gradients an optimizer applied last."""

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            self._held[event.thing] = _members(event.thing.models)

    def on_group_added(self, event: GroupAdded) -> None:
        if event.optimizer in self._held:
            self._held[event.optimizer] |= _members(event.models)

    def on_sampling_gap(self, event: SamplingGap) -> None:
        self._fed.clear()

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        mine = event.optimizer
        window = self.window(mine)
        fed = [each for each in backwards(window) if self.feeds(each, mine)]
        self._fed.pop(mine, None)
        if not fed or event.closure or not is_plain(mine):
            return
        self._fed[mine] = fed[-1]
        for other in self.timeline.optimizers:
            if other is mine or self._fed.get(other) is not fed[-1] or not is_plain(other):
                continue
            last, later = self.timeline.since_step(other)
            if last is None or last.closure or not _together(last, event):
                continue
            if any(_renews(each, mine) or _renews(each, other) for each in later):
                continue
            part = self._shared(last, event, fed[-1])
            if part is not None:
                self._report(last, event, part)

    def _shared(self, last: OptimizerStep, step: OptimizerStep, backward: Backward) -> str | None:
        """The shared part whose gradient both have applied: its name in words."""
        one, other = last.optimizer, step.optimizer
        parts = (
            part
            for part in _parts_of_both(one, other)
            if all(_was_there(part, self._held.get(each)) for each in (one, other))
        )
        if last.applied is not None and step.applied is not None:
            common = len(last.applied & step.applied)
            if not common:
                return None
            part = next(parts, None)
            if part is None:
                return f"{common} of the same parameters"
            return called_as_part(part, "the same parameters")
        for part in parts:
            loss = backward.loss
            if loss is not None and any(share(part, model) for model in loss.models):
                return called_as_part(part, "the same parameters")
        return None

    def _report(self, last: OptimizerStep, step: OptimizerStep, part: str) -> None:
        both = [last.optimizer, step.optimizer]
        in_order = [each for each in self._held if each in both]
        later = in_order[-1] if len(in_order) == 2 else step.optimizer
        one, other = named(last.optimizer, last.spelled), named(step.optimizer, step.spelled)
        self.report(
            later.made if later.made.line else step.place,
            f"{one} and {other} both hold {part}, and both step after one `backward()`: these"
            " parameters are updated twice.",
            fix="Give each parameter to only one optimizer; rates for parts of a model can be"
            " groups of one optimizer.",
            related=[(last.place, "applies the gradients"), (step.place, "applies them again")],
        )


def _members(models: Iterable[Model]) -> set[Model]:
    return {member for model in models for member in model.family()}


def _was_there(part: Model, held: set[Model] | None) -> bool:
    """An optimizer that was made with these modules has parameters of the part."""
    return held is None or not held.isdisjoint(part.family())


def _renews(event: Event, optimizer: Optimizer) -> bool:
    return supplies(event, optimizer) or relieves(event, optimizer)


def _together(last: OptimizerStep, step: OptimizerStep) -> bool:
    """Both belong to one update, and neither is made within the other."""
    if last.place in step.stack or step.place in last.stack:
        return False
    if last.place == step.place and not _in_one_loop(last, step):
        return False
    return step.guards <= last.guards or last.guards <= step.guards


def _in_one_loop(last: OptimizerStep, step: OptimizerStep) -> bool:
    """One statement made both, in two turns of a loop over the optimizers."""
    one, other = last.turns, step.turns
    return (
        bool(one)
        and one[:-1] == other[:-1]
        and one[-1:] != other[-1:]
        and one[-1].loop is other[-1].loop
        and last.stack == step.stack
    )


def _parts_of_both(one: Optimizer, other: Optimizer) -> Iterator[Model]:
    """Modules that two optimizers hold all parameters of."""
    if not (_is_exact(one) and _is_exact(other)):
        return
    for mine in one.models:
        for yours in other.models:
            if mine.covers(yours):
                yield yours
            elif yours.covers(mine):
                yield mine
            else:
                held = set(mine.family())
                both = (part for part in yours.family() if part in held)
                yield from (part for part in both if has_parameters(part))


def _is_exact(optimizer: Optimizer) -> bool:
    return optimizer.known and optimizer.complete and not optimizer.partial

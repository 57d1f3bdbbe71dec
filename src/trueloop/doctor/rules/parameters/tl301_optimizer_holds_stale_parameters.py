"""The optimizer updates tensors that the model no longer uses.

## What it does

Finds a layer that is replaced, or a model that is created again, after the optimizer was created
from the old parameters, and that is then trained with that optimizer.

## Why it breaks training

An optimizer holds the parameters it was given, not the model. The new layer gets gradients that
nothing applies: it keeps its initial values. With a new head on a pretrained body, the body adapts
to a random head: the loss falls slowly, and the score stays far below what others report. With a
whole new model, nothing learns.

## Wrong

```python
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model.fc = nn.Linear(512, 10)
```

## Right

```python
model.fc = nn.Linear(512, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
```

## Sources

- PyTorch, [torch.optim: constructing
  it](https://docs.pytorch.org/docs/stable/optim.html#constructing-it)
- PyTorch,
  [Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict):
  with `assign=True` "the optimizer must be created after the call"
- PyTorch, [Transfer learning
  tutorial](https://docs.pytorch.org/tutorials/beginner/transfer_learning_tutorial.html)

## How it is detected

An optimizer is created from a model; then a layer with parameters is assigned into that model, a
model of the same class takes its name, or parameters are replaced (`load_state_dict(assign=True)`,
`to_empty` from the meta device, `weight_norm`); then the optimizer steps after a `backward()`
through the new ones. Not reported: an optimizer created later, `add_param_group` or a group's list
of parameters set again, a new layer that is frozen, has no parameters or wraps the old one, and an
old model that is still in use.
`.to(device)`, `.half()` and similar calls keep the identity of the parameters in current torch, and
are not a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trueloop.doctor.model.events import (
    Backward,
    Event,
    FlagsSet,
    Made,
    ManualUpdate,
    ModelForward,
    OptimizerStep,
    Replaced,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.measurements import StaleParameter, StrayResolved
from trueloop.doctor.model.optimizer_events import GroupAdded
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.own_parameters import has_parameters


@dataclass(eq=False)
class OptimizerParameters:
    """The source of an optimizer's parameters."""

    optimizer: Optimizer
    made: Event
    models: list[Model]
    members: set[Model]
    """All modules that they contained then."""


@dataclass(eq=False)
class ReplacedParameters:
    """New parameters in place of an optimizer's."""

    held: OptimizerParameters
    event: Event
    new: Model | None
    what: str


class OptimizerHoldsStaleParameters(Rule):
    code = "TL301"

    def __init__(self) -> None:
        super().__init__()
        self.held: list[OptimizerParameters] = []
        self.changes: list[ReplacedParameters] = []
        self.trained: set[Model] = set()
        """Called in what was sent back since the last step."""
        self.frozen: set[Model] = set()
        self.models: list[tuple[Made, Model]] = []
        self.used: dict[Model, int] = {}
        self.regrouped: dict[Optimizer, int] = {}
        """When an optimizer last got parameters that are not known."""

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Optimizer):
            models = list(event.thing.models)
            members = {member for model in models for member in model.family()}
            self.held.append(OptimizerParameters(event.thing, event, models, members))
        elif isinstance(event.thing, Model):
            self.models.append((event, event.thing))

    def on_group_added(self, event: GroupAdded) -> None:
        if not event.models:
            self.regrouped[event.optimizer] = event.serial
        members = {member for model in event.models for member in model.family()}
        models = list(event.models)
        self.held.append(OptimizerParameters(event.optimizer, event, models, members))

    def on_flags_set(self, event: FlagsSet) -> None:
        if event.requires_grad is False:
            self.frozen.update(event.model.family())
        else:
            self.frozen.difference_update(event.model.family())

    def on_replaced(self, event: Replaced) -> None:
        if event.how != "assigned":
            self._note(event, event.model, None, "The parameters of `{}` are replaced")
            return
        new, old = event.new, event.old
        if not isinstance(new, Model) or not has_parameters(new):
            return
        if isinstance(old, Model) and (new.shares_parameters(old) or not has_parameters(old)):
            return
        shown = f"`{event.model.name or 'model'}.{event.attribute}` is replaced"
        self._note(event, event.model, new, shown, old)

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if event.assign and isinstance(event.thing, Model):
            self._note(event, event.thing, None, "The parameters of `{}` are replaced")
        elif isinstance(event.thing, Model):
            self.used[event.thing] = event.serial

    def on_manual_update(self, event: ManualUpdate) -> None:
        for model in event.models:
            self.used[model] = event.serial

    def _note(
        self, event: Event, owner: Model, new: Model | None, what: str, old: object = None
    ) -> None:
        for held in self.held:
            holds = owner in held.members or old in held.members
            if new is not None and (self._is_given(held.optimizer, new) or not holds):
                continue
            if holds or any(owner.covers(model) for model in held.models):
                self.changes.append(
                    ReplacedParameters(held, event, new, what.format(owner.name or "model"))
                )

    def _is_given(self, optimizer: Optimizer, model: Model) -> bool:
        """The optimizer got it, at first or as a group."""
        return any(model in each.members for each in self.held if each.optimizer is optimizer)

    def on_model_forward(self, event: ModelForward) -> None:
        self.used[event.model] = event.serial

    def on_backward(self, event: Backward) -> None:
        if event.loss is not None:
            self.trained |= event.loss.models

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        trained, self.trained = self.trained, set()
        if not trained:
            return
        for change in self.changes:
            if change.held.optimizer is event.optimizer and self._is_fault(change, trained):
                self._report(change)
        self._look_for_rebuilt(event.optimizer, trained)
        if not event.optimizer.models or not any(event.optimizer.trains(each) for each in trained):
            # Another optimizer's turn: what was sent back waits for its own.
            self.trained |= trained

    def _is_fault(self, change: ReplacedParameters, trained: set[Model]) -> bool:
        held, new = change.held, change.new
        if len(held.optimizer.models) != len(held.models):
            return False  # A group was added.
        if self.regrouped.get(held.optimizer, 0) > change.event.serial:
            return False
        subject: Any = new if new is not None else held.models[0]
        if new is not None and (new in self.frozen or self._is_held_since(new, change.event)):
            return False
        if new is None and self._is_held_since(subject, change.event):
            return False
        return any(model.shares_parameters(subject) for model in trained)

    def _is_held_since(self, model: Model, event: Event) -> bool:
        """An optimizer that was made later has it."""
        return any(
            each.made.serial > event.serial and any(model in m.family() for m in each.models)
            for each in self.held
        )

    def _report(self, change: ReplacedParameters) -> None:
        optimizer = change.held.optimizer.name or "the optimizer"
        self._report_at(change.event.place, change.what, optimizer, change.held.made.place)

    def _report_at(self, place: Location, what: str, optimizer: str, made: Location) -> None:
        shown = f"`{optimizer}`" if " " not in optimizer else optimizer
        self.report(
            place,
            f"{what} after {shown} was created: the optimizer keeps updating the old"
            " parameters, and the new ones are never trained.",
            fix=f"Create {shown} after this line.",
            related=[(made, "the optimizer gets the old parameters here")],
        )

    # -------------------------------------------------------------------------- as it runs

    def on_stale_parameter(self, event: StaleParameter) -> None:
        """Parameters get gradients, but the optimizer holds different ones that no module has."""
        model, _, _ = event.parameter.partition(".")
        if event.rebuilt:
            what = f"`{model}` is created again" if event.named else "The model is created again"
        else:
            what = f"`{event.parameter}` is replaced"
        assert event.optimizer is not None
        self._report_at(
            event.place, what, event.optimizer.name or "the optimizer", event.optimizer.made
        )

    def on_stray_resolved(self, event: StrayResolved) -> None:
        self.refute(event.place)

    # -------------------------------------------------------------------------- a new model

    def _look_for_rebuilt(self, optimizer: Optimizer, trained: set[Model]) -> None:
        held = next((each for each in self.held if each.optimizer is optimizer), None)
        if held is None or not optimizer.complete or not held.models or optimizer.tensors:
            return
        if any(not held.members.isdisjoint(model.family()) for model in trained):
            return
        for made, model in self.models:
            if model not in trained or made.serial < held.made.serial:
                continue
            old = next((each for each in held.models if _succeeds(model, each)), None)
            if old is None or self.used.get(old, 0) > made.serial:
                continue
            if not self._is_held_since(model, held.made):
                # Of two that one function makes, the line that calls it counts.
                of_one = model.made[:3] == old.made[:3] and made.stack
                place = made.stack[-1] if of_one else made.place
                name = optimizer.name or "the optimizer"
                self._report_at(place, f"`{model.name}` is created again", name, held.made.place)


def _succeeds(new: Model, old: Model) -> bool:
    return bool(new.name) and new.name == old.name and new.kind == old.kind and new.known

"""A frozen, pretrained part runs in train mode while other parts train.

## What it does

Finds a pretrained module whose parameters are all frozen, or a teacher that no optimizer updates,
which is called in train mode in the training loop of a different module, and has batch norm or
dropout.

## Why it breaks training

`requires_grad_(False)`, `torch.no_grad()` and an optimizer that leaves a part out fix its
parameters, and nothing else. In train mode batch norm normalises each batch with the batch's own
mean and variance and moves its running statistics toward them, without any gradient: the part that
was meant to stay as it is changes with every batch. Dropout keeps dropping activations, so that a
teacher gives different targets for the same sample each time. Nothing raises. The signs are
features, targets or validation scores of a "frozen" network that change during the training, and
results that depend on the batch size. A usual cause is `model.train()`, which switches the frozen
parts inside of the model too.

## Wrong

```python
model.backbone.load_state_dict(torch.load("backbone.pt"))
model.backbone.requires_grad_(False)
for epoch in range(epochs):
    model.train()
    for images, labels in loader:
        loss = criterion(model(images), labels)
```

## Right

```python
model.backbone.load_state_dict(torch.load("backbone.pt"))
model.backbone.requires_grad_(False)
for epoch in range(epochs):
    model.train()
    model.backbone.eval()
    for images, labels in loader:
        loss = criterion(model(images), labels)
```

## Sources

- PyTorch, [Autograd mechanics: evaluation
  mode](https://docs.pytorch.org/docs/stable/notes/autograd.html#evaluation-mode-nn-module-eval): it
  is independent of gradients being recorded
- PyTorch,
  [BatchNorm2d](https://docs.pytorch.org/docs/stable/generated/torch.nn.BatchNorm2d.html):
  running estimates are kept "during training", whatever the parameters require
- Keras, [Transfer learning and
  fine-tuning](https://keras.io/guides/transfer_learning/): frozen batch norm must run in inference
  mode

## How it is detected

A part whose weights were loaded, trained earlier in the program, or copied from a model that was
(live, also a frozen part whose batch norms have gathered statistics before), is called in train
mode in a loop that steps an optimizer of other parameters. Its own parameters are all frozen and
stay so, or it is a separate module that is called under `no_grad` and that no optimizer updates;
its weights do not change. Batch norm counts if it keeps running statistics; live, if it has
gathered some before. Dropout counts only in a teacher, which gets the same input as the module that
trains: inside of a network, in front of a head or of adapters, it is noise on the features, which
is the usual way to fine-tune. Not reported: a part that is put into train mode by its own `train()`
(a validation that goes back to the mode which it has found is none), or whose statistics are reset,
averaged (`momentum=None`) or taken again (`update_bn`); weights that are copied or averaged from a
model that trains (EMA, target networks); a part that is thawed later; and in source, models whose
inside is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from trueloop.doctor.model.events import (
    Ended,
    FlagsSet,
    ManualUpdate,
    ModelForward,
    ModeSet,
    OptimizerStep,
    StateDictLoaded,
    Used,
)
from trueloop.doctor.model.findings import Insert, Remedy
from trueloop.doctor.model.measurements import FrozenLayersRan
from trueloop.doctor.model.things import Model, Optimizer, StateDict, Tensor
from trueloop.doctor.rules.shared.evidence import draws_weights
from trueloop.doctor.rules.shared.frozen import FrozenModules
from trueloop.doctor.rules.shared.passes import called, may_train

_TAKEN_AGAIN = ("torch.optim.swa_utils.update_bn", "torch.nn.Module.reset_running_stats")
_SET_BY_HAND = frozenset("momentum track_running_stats running_mean running_var training".split())
_UPDATES = 3
"""Live, that many updates have to show it."""


@dataclass(eq=False)
class Sighting:
    """A part that runs in train mode, in the forwards of one place."""

    forward: ModelForward
    part: Model
    frozen: bool
    """All its parameters are; else none of them is updated."""
    live: bool = False
    layers: set[Model] = field(default_factory=set)
    updates: int = 0
    beside: bool = False
    """A module that trains gets the same input."""

    @property
    def normalises(self) -> bool:
        return any(_is_batch_norm(layer) for layer in self.layers)


class FrozenPartInTrainMode(FrozenModules):
    code = "TL208"

    def __init__(self) -> None:
        super().__init__()
        self._loads: list[StateDictLoaded] = []
        self._steps: dict[Optimizer, tuple[int, int]] = {}
        """Serial numbers of the first step and the last."""
        self._modes: dict[Model, ModeSet] = {}
        """The latest `train()` of each module."""
        self._before: dict[Model, tuple[object, ModeSet | None]] = {}
        """For modules in eval mode: the calls that led to `eval()`, and the `train()` before it."""
        self._called: dict[Model, set[Model]] = {}
        """The layers that a module calls."""
        self._adapting: set[Model] = set()
        self._optional: set[Model] = set()
        """Modules that some runs put into eval mode."""
        self._sightings: dict[tuple[object, ...], Sighting] = {}
        self._recent: list[Sighting] = []
        self._beside: list[ModelForward] = []
        """Forwards with a gradient since the last step."""

    # ------------------------------------------------------------------ what a part is

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Model) and not event.guards:
            self._loads.append(event)

    def on_mode_set(self, event: ModeSet) -> None:
        if event.training is not False:
            calls, earlier = self._before.pop(event.model, (None, None))
            if calls != (event.place.path, event.stack):
                self._modes[event.model] = event
            elif earlier is not None:  # a validation leaves the mode that it has found
                self._modes[event.model] = earlier
        elif event.guards:
            self._optional.update(event.model.family())
        else:
            calls = event.place.path, event.stack
            self._before[event.model] = calls, self._modes.get(event.model)
            for each in event.model.family():  # of no account any more
                self._modes.pop(each, None)

    def on_flags_set(self, event: FlagsSet) -> None:
        super().on_flags_set(event)
        if event.requires_grad is not False:
            self._adapting.update(event.model.family())

    def on_used(self, event: Used) -> None:
        if event.what in _TAKEN_AGAIN and isinstance(event.subject, Model):
            self._adapting.update(event.subject.family())

    def on_manual_update(self, event: ManualUpdate) -> None:
        if isinstance(event.target, Tensor):  # live, only of what an optimizer holds
            for model in event.models:
                self._adapting.update(model.family())

    # ------------------------------------------------------------------ where it runs

    def on_model_forward(self, event: ModelForward) -> None:
        if event.grad:
            self._beside.append(event)
        layers = self._called.setdefault(event.model, set())
        layers.update(event.switched_on)
        if any(layer.training is False and layer in self._optional for layer in layers):
            self.refute(event.place)
        for layer in layers:
            if layer.training is True and _depends_on_mode(layer):
                self._look_at(event, layer)

    def _look_at(self, event: ModelForward, layer: Model) -> None:
        for each in self.frozen:
            if self.freezes(each, layer) and _is_known(each.model) and draws_weights(each.model):
                part = each.model if event.model.covers(each.model) else event.model
                self._sight(event, part, [layer], frozen=True)
                return
        if not event.grad and _is_known(event.model):
            self._sight(event, event.model, [layer], frozen=False)

    def on_frozen_layers_ran(self, event: FrozenLayersRan) -> None:
        if event.written:
            self._adapting.update(event.part.family())
        self._sight(event.forward, event.part, event.layers, frozen=event.frozen, live=True)

    def _sight(
        self,
        event: ModelForward,
        part: Model,
        layers: Iterable[Model],
        *,
        frozen: bool,
        live: bool = False,
    ) -> None:
        if event.turn is None:
            return
        key = event.place, event.model, part
        sighting = self._sightings.get(key)
        if sighting is None:
            sighting = self._sightings[key] = Sighting(event, part, frozen, live)
        sighting.layers.update(layers)
        if sighting not in self._recent:
            self._recent.append(sighting)

    def on_optimizer_step(self, event: OptimizerStep) -> None:
        first, _ = self._steps.get(event.optimizer, (event.serial, 0))
        self._steps[event.optimizer] = first, event.serial
        for sighting in self._recent:
            turn = sighting.forward.turn
            if turn is not None and any(each.loop is turn.loop for each in event.turns):
                sighting.updates += 1
                sighting.beside |= any(
                    not each.model.shares_parameters(sighting.part)
                    and any(given in sighting.forward.inputs for given in each.inputs)
                    for each in self._beside
                )
        self._recent, self._beside = [], []

    # ------------------------------------------------------------------ what it comes to

    def on_ended(self, event: Ended) -> None:
        found: dict[tuple[object, ...], list[Sighting]] = {}
        parts: set[Model] = set()
        for sighting in self._sightings.values():
            enough = sighting.updates >= (_UPDATES if sighting.live else 1)
            if enough and sighting.part not in parts and self._is_fault(sighting):
                parts.add(sighting.part)
                found.setdefault(sighting.forward.place, []).append(sighting)
        for sightings in found.values():
            self._report(sightings)

    def _is_fault(self, sighting: Sighting) -> bool:
        part, forward = sighting.part, sighting.forward
        learned = self._learned_at(sighting)
        if learned is None and self._has_gathered(sighting):
            learned = 0
        if learned is None or not self._adapting.isdisjoint(part.family()):
            return False
        if any(mode.serial > learned and part.covers(model) for model, mode in self._modes.items()):
            return False
        if not sighting.frozen:
            updated = [each for each, (_, last) in self._steps.items() if last > forward.serial]
            if part.exposed or any(may_train(each, part) for each in updated):
                return False
        return sighting.normalises or (part is forward.model and sighting.beside)

    def _has_gathered(self, sighting: Sighting) -> bool:
        """Live, a frozen part came with statistics, and nothing is loaded into it."""
        part = set(sighting.part.family())
        loaded = any(
            isinstance(each.thing, Model) and not part.isdisjoint(each.thing.family())
            for each in self._loads
        )
        return sighting.live and sighting.frozen and sighting.normalises and not loaded

    def _learned_at(self, sighting: Sighting) -> int | None:
        """When the part got its weights: read from somewhere, or trained in an earlier loop."""
        part, serial = set(sighting.part.family()), sighting.forward.serial
        found = [
            each.serial
            for each in self._loads
            if each.serial < serial
            and isinstance(each.thing, Model)
            and not part.isdisjoint(_leaves(each.thing))
            and not self._trains_on(each)
        ]
        original = sighting.part.copy_of
        if original is not None:
            found += [
                first
                for optimizer, (first, last) in self._steps.items()
                if optimizer.trains(original) and last < serial
            ]
        found += [
            last
            for optimizer, (_, last) in self._steps.items()
            if last < serial
            and any(not part.isdisjoint(_leaves(model)) for model in optimizer.models)
        ]
        return max(found, default=None)

    def _trains_on(self, event: StateDictLoaded) -> bool:
        """The state is that of a model that learns later: a copy of it, and no teacher."""
        owner = event.state.owner if isinstance(event.state, StateDict) else None
        return isinstance(owner, Model) and any(
            last > event.serial and optimizer.trains(owner)
            for optimizer, (_, last) in self._steps.items()
        )

    def _report(self, sightings: list[Sighting]) -> None:
        sighting = sightings[0]
        forward = sighting.forward
        name, inner = called(forward), _path(forward.model, sighting.part)
        if len(sightings) == 1 and inner is not None:
            name = ".".join((name, *inner))
            what, fix = f"`{name}`", f"`{name}.eval()`"
        else:
            what, fix = f"The frozen part of `{name}`", "`eval()` on the frozen modules"
        kept = "frozen" if sighting.frozen else "not updated"
        if any(each.normalises for each in sightings):
            effect = (
                "batch norm normalises with the batch's own statistics and moves the running ones"
                " with every batch, so the pretrained part changes although its weights stay"
            )
        else:
            effect = "dropout stays on, so its targets for one sample differ from call to call"
        by = self._switched_by(sighting)
        self.report(
            forward.place,
            f"{what} is {kept} and runs in train mode while other parameters train: {effect}.",
            fix=f"Call {fix} after every `train()` that reaches it."
            if by is not None
            else f"Call {fix} before the training loop.",
            related=[(by.place, "turns train mode on")] if by is not None else (),
            remedies=self._remedy(sighting, by) if len(sightings) == 1 else (),
        )

    def _switched_by(self, sighting: Sighting) -> ModeSet | None:
        """The latest `train()` of what the part belongs to."""
        learned = self._learned_at(sighting) or 0
        found = [
            mode
            for model, mode in self._modes.items()
            if model is not sighting.part and model.covers(sighting.part) and mode.serial > learned
        ]
        return max(found, key=lambda mode: mode.serial, default=None)

    def _remedy(self, sighting: Sighting, by: ModeSet | None) -> list[Remedy]:
        """`part.eval()` after the `train()`, or before the loop where there is none."""
        forward = sighting.forward
        inner, turn = _path(forward.model, sighting.part), forward.turn
        if inner is None or not forward.spelled or turn is None:
            return []
        if forward.spelled.partition(".")[0] in turn.loop.variables:
            return []
        text = ".".join((forward.spelled, *inner)) + ".eval()"
        if by is None:
            same = turn.loop.place.function == forward.place.function and not turn.loop.framework
            return [Insert(text, turn.loop.place, "before")] if same else []
        same = by.place.function == forward.place.function and by.model is forward.model
        return [Insert(text, by.place, "after")] if same else []


def _is_known(model: Model) -> bool:
    """Its inside was read."""
    return model.known and all(member.complete for member in model.family())


def _depends_on_mode(layer: Model) -> bool:
    if not _SET_BY_HAND.isdisjoint(layer.attributes):
        return False
    return _is_batch_norm(layer) if "BatchNorm" in layer.kind else bool(layer.arguments.get("p"))


def _is_batch_norm(layer: Model) -> bool:
    """One that has running statistics, and no longer an average over all batches."""
    return (
        "BatchNorm" in layer.kind
        and layer.arguments.get("track_running_stats") is not False
        and layer.arguments.get("momentum", 0.1) not in (None, 0, 0.0)
    )


def _leaves(model: Model) -> set[Model]:
    return {member for member in model.family() if not member.children}


def _path(outer: Model, part: Model) -> list[str] | None:
    """The attributes that lead from a module to a part of it; None if there are none to type."""
    if outer is part:
        return []
    for name, child in outer.children.items():
        inner = _path(child, part) if name.isidentifier() and child.covers(part) else None
        if inner is not None:
            return [name, *inner]
    return None

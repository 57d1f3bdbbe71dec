"""Layers in a plain list, tuple or dict of a module are not registered.

## What it does

Finds layers with parameters that a module keeps in a Python list, tuple or dict, or in an object
that is not a module, and uses in its methods, without anything that registers them.

## Why it breaks training

A module registers its attributes and the contents of `nn.ModuleList`, `nn.ModuleDict` and
`nn.Sequential`. A plain container, or an object of a plain class, hides its layers:
`model.parameters()` skips them, so no optimizer trains them; `model.to(device)` does not move them;
`state_dict()` does not save them, and a checkpoint loads without complaint. On the CPU nothing
raises: the layers keep their initial weights. The model learns less than it should, and its score
is lost after loading.

## Wrong

```python
self.layers = [nn.Linear(dim, dim) for _ in range(depth)]
```

## Right

```python
self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(depth)])
```

## Sources

- PyTorch, [ModuleList](https://docs.pytorch.org/docs/stable/generated/torch.nn.ModuleList.html):
  "modules it contains are properly registered, and will be visible by all Module methods"
- PyTorch, [Modules notes](https://docs.pytorch.org/docs/stable/notes/modules.html): "it's not
  possible to register submodules within plain Python lists or dicts"

## How it is detected

The container is an attribute of a user-defined module and is used in a method other than `__init__`
(`self.layer = nn.Linear(4, 4),` is a tuple, too: by its comma); the layers have parameters, are
created while the module is created, and never become part of a module. Not reported: layers that
are registered otherwise (`setattr`, `add_module`, `nn.Sequential(*layers)`, one of a dict that is
chosen by its name), whose parameters are in an `nn.ParameterList`, are frozen, are passed to an
optimizer by hand or handed out by a method for that (`found += [self.heads[i].weight]`), or that
only predict (each gets its own `eval()`, or its own `load_state_dict(...)` in a program that does
not train the module); modules, or objects in them,
that define their own `parameters()`; objects whose class runs its layers without a graph or copies
them (a teacher); modules that come from outside (a teacher hidden on purpose); and modules that a
notebook defines and never makes.
"""

from __future__ import annotations

from collections.abc import Iterator

from trueloop.doctor.model.events import (
    AttributeSet,
    Ended,
    EscapedToUnknown,
    FlagsSet,
    Made,
    ModeSet,
    StateDictLoaded,
)
from trueloop.doctor.model.findings import Location, Remedy, Replace
from trueloop.doctor.model.known_values import DictValue, Sequence, Unknown, Value, contents
from trueloop.doctor.model.measurements import HiddenParameter, StrayResolved
from trueloop.doctor.model.things import Model, Optimizer
from trueloop.doctor.rules.base import Rule
from trueloop.doctor.rules.shared.own_parameters import has_parameters, owners_of_parameters


class ModulesInPlainContainer(Rule):
    code = "TL303"

    def __init__(self) -> None:
        super().__init__()
        self.set: list[AttributeSet] = []
        self.made: dict[Model, tuple[Location, ...]] = {}
        self.optimizers: list[Optimizer] = []
        self.frozen: set[Model] = set()
        self.opaque: set[Model] = set()
        self.asleep: set[Model] = set()
        """Layers that the program itself puts into eval mode, one by one: they only predict."""
        self.loaded: set[Model] = set()

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Model):
            self.made[event.thing] = event.stack
        elif isinstance(event.thing, Optimizer):
            self.optimizers.append(event.thing)

    def on_attribute_set(self, event: AttributeSet) -> None:
        if not isinstance(event.value, Model) and event.read:
            self.set.append(event)

    def on_flags_set(self, event: FlagsSet) -> None:
        if event.requires_grad is not True:
            self.frozen.update(event.model.family())

    def on_mode_set(self, event: ModeSet) -> None:
        if event.training is False:
            self.asleep.update(event.model.family())
        else:
            self.asleep.difference_update(event.model.family())

    def on_state_dict_loaded(self, event: StateDictLoaded) -> None:
        if isinstance(event.thing, Model):
            self.loaded.add(event.thing)

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        self.opaque.update(thing for thing in event.things if isinstance(thing, Model))

    def on_stray_resolved(self, event: StrayResolved) -> None:
        self.refute(event.place)

    def on_hidden_parameter(self, event: HiddenParameter) -> None:
        """A layer is called and gets gradients, but nothing updates it."""
        if event.container not in ("list", "tuple", "dict"):
            self._report_helper(event.place, event.attribute, event.container, event.holder,
                                event.made)  # fmt: skip
            return
        how = "ModuleDict" if event.container == "dict" else "ModuleList"
        self.report(
            event.place,
            f"`{event.attribute}` is a plain {event.container}, so its layers are"
            " not registered: `parameters()`, `to()` and `state_dict()` of"
            f" `{event.holder}` skip them, and the optimizer does not train them.",
            fix=f"Use `nn.{how}` instead.",
            related=[(event.made, "a layer that is not trained")],
        )

    def on_ended(self, event: Ended) -> None:
        for each in self.set:
            model = each.model
            if each.place.path.endswith(".ipynb") and not event.whole_program:
                continue  # a class that the notebook defines and never makes: nobody can import it
            if model.attributes.get(each.attribute) is not each.value or model.names_parameters:
                continue
            if each.trailing_comma:
                # Calling the tuple fails: what happens to the layer after that does not count.
                self.opaque.difference_update(layers_in(each.value))
            if _may_be_chosen_from(model, each.value):
                continue
            held = _held(each)
            hidden = [layer for layer in layers_in(held) if self._is_hidden(model, layer)]
            if any(
                self._only_predicts(model, each) or self._is_handed(each) for each in _trained(held)
            ):
                self.refute(each.place)
                self.settle(each.place)
            elif hidden and all(self._is_hidden(model, layer) for layer in _trained(held)):
                self._report(each, hidden[0])

    def _is_hidden(self, model: Model, layer: Model) -> bool:
        if layer.parents or model.covers(layer) or not has_parameters(layer):
            return False
        if _is_held(layer, [model]) or _is_part_of_others(layer):
            return False  # registered part by part, each under its own name
        aside = self.frozen | self.opaque
        if layer in self.asleep or any(member in aside for member in layer.family()):
            return False
        if not self._is_made_inside(model, layer) or _registers_parameters(model, layer):
            return False
        return not self._is_handed(layer) and all(each.complete for each in self.optimizers)

    def _is_handed(self, layer: Model) -> bool:
        """An optimizer was given its parameters by name."""
        return any(held.covers(layer) for each in self.optimizers for held in each.models)

    def _only_predicts(self, model: Model, layer: Model) -> bool:
        """It gets weights of its own from outside, and no optimizer has what keeps it."""
        trained = any(optimizer.trains(model) for optimizer in self.optimizers)
        return layer in self.loaded and not trained

    def _is_made_inside(self, model: Model, layer: Model) -> bool:
        """It was made while the module was, or in a method of its class."""
        short = model.kind.rpartition(".")[2]
        if layer.made.function.partition(".")[0] == short:
            return True
        return any(place[:3] == model.made[:3] for place in self.made.get(layer, ()))

    def _report(self, event: AttributeSet, layer: Model) -> None:
        if event.helper:
            self._report_helper(event.place, event.attribute, event.helper, event.model.kind,
                                layer.made)  # fmt: skip
            return
        how = "ModuleDict" if isinstance(event.value, DictValue) else "ModuleList"
        kind = event.value.kind if isinstance(event.value, Sequence) else "dict"
        if event.trailing_comma:
            self.report(
                event.place,
                f"The comma at the end makes `{event.attribute}` a tuple with one layer in it: the"
                " layer is not registered, so it is not trained, and calling"
                f" `self.{event.attribute}(...)` raises `TypeError`.",
                fix="Remove the comma.",
            )
            return
        self.report(
            event.place,
            f"`{event.attribute}` is a plain {kind}, so its layers are not registered:"
            f" `parameters()`, `to()` and `state_dict()` of `{event.model.kind}` skip"
            " them, and the optimizer does not train them.",
            fix=f"Use `nn.{how}` instead.",
            related=[(layer.made, "a layer that is not trained")] if layer.made.line else [],
            remedies=_remedy(event, how),
        )

    def _report_helper(
        self, place: Location, attribute: str, helper: str, model: str, made: Location
    ) -> None:
        self.report(
            place,
            f"`{attribute}` is a `{helper}`, which is not a module, so its layers are not"
            f" registered: `parameters()`, `to()` and `state_dict()` of `{model}` skip them, and"
            " the optimizer does not train them.",
            fix=f"Make `{helper}` an `nn.Module`, with its layers as attributes, in an"
            " `nn.ModuleList` or in an `nn.ModuleDict`.",
            related=[(made, "a layer that is not trained")] if made.line else [],
        )


def _held(event: AttributeSet) -> Value:
    """The container, or what an object that is not a module has in its attributes."""
    if not event.helper:
        return event.value
    return Sequence("tuple", [*event.helper_attributes.values()])


def _registers_parameters(model: Model, layer: Model) -> bool:
    """A `ParameterList` of the module was given the layer's parameters, or may have been."""
    given = [member.parameters_of for member in model.family()]
    held = [one for each in given for one in each or ()]
    return None in given or _is_held(layer, held)


def _is_part_of_others(layer: Model) -> bool:
    """Its parameters are those of a different network, whose layers it was given."""
    family = {*layer.family()}
    return all(not family.issuperset(part.parents) for part in owners_of_parameters(layer))


def _is_held(layer: Model, held: list[Model]) -> bool:
    """All its parameters belong to one of these: those of a `Sequential` may come part by part."""
    parts = owners_of_parameters(layer)
    return bool(parts) and all(any(each.covers(part) for each in held) for part in parts)


def layers_in(value: Value, depth: int = 2) -> Iterator[Model]:
    """The modules in a container, and in containers in it."""
    rest = value.rest if isinstance(value, DictValue) else []
    for part in [*contents(value), *rest]:
        if isinstance(part, Model):
            yield part
        elif depth:
            yield from layers_in(part, depth - 1)


def _may_be_chosen_from(model: Model, table: Value) -> bool:
    """Another attribute may have one of a dict's layers, or its parts: the one that an option
    names."""
    if not isinstance(table, DictValue):
        return False
    if any(model.covers(part) for layer in layers_in(table) for part in layer.family()):
        return True
    others = [each for each in model.attributes.values() if isinstance(each, Unknown)]
    return any(table in each.of for each in others) or any(
        (not child.known and not child.made.line) or (not child.complete and not child.children)
        for child in model.children.values()
    )


def _trained(value: Value) -> list[Model]:
    return [layer for layer in layers_in(value) if has_parameters(layer)]


def _remedy(event: AttributeSet, how: str) -> list[Remedy]:
    """The container around the value, if it contains only modules."""
    if not event.nn or not event.what.line:
        return []
    flat = contents(event.value)
    if not flat or not all(isinstance(part, Model) for part in flat):
        return []
    keys = event.value.entries if isinstance(event.value, DictValue) else ()
    if not all(isinstance(key, str) for key in keys):
        return []
    return [Replace(event.what, f"{event.nn}.{how}({{}})")]

"""Containers of layers: `nn.Sequential`, `nn.ModuleList`, `nn.ModuleDict`, and classes of the
user's that extend them."""

from __future__ import annotations

import ast
from typing import Any

from trueloop.doctor.model.things import Model
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    OpaqueObject,
    Sequence,
    Unknown,
    Value,
)
from trueloop.doctor.static.stubs import repeated_layers

_KINDS = ("Sequential", "ModuleList", "ModuleDict")
_WITHOUT_WEIGHTS = (
    "kornia.augmentation.", "kornia.color.", "kornia.enhance.", "torch_audiomentations.",
    "torchaudio.transforms.", "torchvision.transforms.",
)  # fmt: skip


def container_of(model: Model) -> str:
    """`Sequential`, `ModuleList` or `ModuleDict`, if it is one or its class extends one."""
    names = [model.kind, *(model.cls.dotted_bases() if isinstance(model.cls, Class) else ())]
    found = (each.removeprefix("torch.nn.") for each in names if each.startswith("torch.nn."))
    return next((each for each in found if each in _KINDS), "")


def is_sequential(model: Model) -> bool:
    """Its layers are called one after the other."""
    return container_of(model) == "Sequential"


@methods(Model, "__init__")
def _initialised(call: LibraryCall) -> Value:
    """`super().__init__(nn.Linear(4, 4), nn.ReLU())` in a class that extends a container."""
    model: Model = call.receiver
    kind = container_of(model)
    if kind:
        fill(call, model, kind)
    return NONE


def fill(call: LibraryCall, model: Model, short: str) -> None:
    """Give a container the layers that its constructor gets."""
    parts: list[tuple[str, Any]] = [(str(i), arg) for i, arg in enumerate(call.args)]
    first = call.arg(0)
    if len(call.args) == 1 and isinstance(first, DictValue):
        parts = [(str(key), value) for key, value in first.entries.items()]
        parts += [(f"<{i}>", value) for i, value in enumerate(first.rest)]
        model.complete = not first.open
    elif len(call.args) == 1 and isinstance(first, Sequence):
        parts = [(str(i), value) for i, value in enumerate(first.values)]
        model.complete = not first.open
        model.samples = _are_samples(first)
    elif len(call.args) == 1 and isinstance(first, Model) and short == "ModuleList":
        parts = list(first.children.items())
    model.complete &= not call.open
    if call.open and not call.kwargs:
        lists = [each for each in call.spread if not isinstance(each, DictValue)]
        model.samples = bool(lists) and all(map(_are_samples, lists))
    for each in call.spread:  # `nn.Sequential(*[Layer() for _ in range(count)])`
        if isinstance(each, Sequence):
            parts += [(str(len(parts) + i), value) for i, value in enumerate(each.values)]
    for name, value in parts:
        add_child(model, name, value)


def _are_samples(value: object) -> bool:
    """A list that a loop or a comprehension fills: what it has in further turns is like what it has
    in the first."""
    return (
        isinstance(value, Sequence)
        and not value.uncounted
        and bool(value.values)
        and all(isinstance(each, Model) for each in value.values)
    )


def add_child(model: Model, name: str, value: Value | None) -> None:
    if isinstance(value, Model):
        model.children[name] = value
        value.parents.append(model)
    elif isinstance(value, OpaqueObject) and value.kind.startswith(_WITHOUT_WEIGHTS):
        pass  # a spectrogram, a normalization: modules without weights
    elif not (isinstance(value, Constant) and value.value is None):
        model.complete = False


@methods(Model, "append", "add_module", "register_module", "insert", "extend", "update")
def _append(call: LibraryCall) -> Value:
    model: Model = call.receiver
    last = call.args[-1] if call.args else None
    if isinstance(last, Model) and isinstance(call.node, ast.Call) and call.machine.turns:
        repeated_layers.notice_appended(call.machine, call.node, last, [*model.children.values()])
    if call.name in ("append", "insert"):
        add_child(model, str(len(model.children)), call.args[-1] if call.args else NONE)
    elif call.name in ("extend", "update"):
        extend(model, call.arg(0))
    else:
        add_child(model, str(call.const(0) or free_name(model, call.arg(0))), call.arg(1))
    return model if call.name == "append" else NONE


def extend(model: Model, value: Value | None) -> None:
    """`layers.extend([layer])`, or `layers += [layer]`."""
    parts: list[Value] = []
    if isinstance(value, DictValue):
        for key, each in value.entries.items():
            add_child(model, str(key), each)
    elif isinstance(value, Sequence):
        parts = list(value.values)
    elif isinstance(value, Model):
        parts = list(value.children.values())
    for each in parts:
        add_child(model, str(len(model.children)), each)
    known = isinstance(value, (Sequence, DictValue)) and not value.open
    model.complete &= known or (isinstance(value, Model) and value.complete)


def item_in(model: Model, index: object) -> Value | None:
    """`layers[0]`, `layers[:-1]` or `layers["first"]`; None where it is not known."""
    children: list[Value] = [*model.children.values()]
    if isinstance(index, slice) and container_of(model) in ("ModuleList", "Sequential"):
        try:
            return Sequence("list", children[index], not model.complete)
        except (TypeError, ValueError):
            return None
    if isinstance(index, int) and -len(children) <= index < len(children):
        return children[index]
    return model.children.get(index) if isinstance(index, str) else None


@methods(Model, "items", "keys", "values")
def _entries(call: LibraryCall) -> Value:
    """Of a `ModuleDict`."""
    model: Model = call.receiver
    pairs: list[tuple[Value, Value]] = [(Constant(k), v) for k, v in model.children.items()]
    found: list[Value] = [Sequence("tuple", [*pair]) for pair in pairs]
    if call.name != "items":
        found = [pair[call.name == "values"] for pair in pairs]
    return Sequence("list", found, not model.complete)


def free_name(model: Model, written: Value | None) -> str:
    """A name for a layer whose own is not known: `self.add_module(f"layer{i}", layer)`."""
    return f"<{_pattern(written)}>{len(model.children)}"


def named_so(owner: Value, written: Value | None) -> Value | None:
    """The last layer that was given a name of this kind: `getattr(self, f"layer{i}")`."""
    kind = f"<{_pattern(written)}>"
    children = owner.children if isinstance(owner, Model) else {}
    return next((children[name] for name in reversed(children) if name.startswith(kind)), None)


def _pattern(written: Value | None) -> str:
    """`layer{}` of `f"layer{i}"`."""
    last = written.of[-1] if isinstance(written, Unknown) and written.of else None
    return last.value if isinstance(last, Constant) and isinstance(last.value, str) else ""

"""Containers of layers: `nn.Sequential`, `nn.ModuleList`, `nn.ModuleDict`, and classes of the
user's that extend them."""

from __future__ import annotations

from typing import Any

from trueloop.doctor.model.things import Model
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Class,
    Constant,
    DictValue,
    Sequence,
    Value,
)

_KINDS = ("Sequential", "ModuleList", "ModuleDict")


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
        model.complete = not first.open
    elif len(call.args) == 1 and isinstance(first, Sequence):
        parts = [(str(i), value) for i, value in enumerate(first.values)]
        model.complete = not first.open
    elif len(call.args) == 1 and isinstance(first, Model) and short == "ModuleList":
        parts = list(first.children.items())
    model.complete &= not call.open
    for name, value in parts:
        add_child(model, name, value)


def add_child(model: Model, name: str, value: Value | None) -> None:
    if isinstance(value, Model):
        model.children[name] = value
        value.parents.append(model)
    elif not (isinstance(value, Constant) and value.value is None):
        model.complete = False


@methods(Model, "append", "add_module", "register_module", "insert", "extend", "update")
def _append(call: LibraryCall) -> Value:
    model: Model = call.receiver
    if call.name in ("append", "insert"):
        add_child(model, str(len(model.children)), call.args[-1] if call.args else NONE)
    elif call.name in ("extend", "update"):
        extend(model, call.arg(0))
    else:
        add_child(model, str(call.const(0) or f"<{len(model.children)}>"), call.arg(1))
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

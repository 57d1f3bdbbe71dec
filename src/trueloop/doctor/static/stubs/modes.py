"""Train and eval mode of modules."""

from __future__ import annotations

import ast

from trueloop.doctor.model.events import ModeSet
from trueloop.doctor.model.nodes import walk
from trueloop.doctor.model.things import Model
from trueloop.doctor.static.interpreter.calls import enter
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.syntax import once, tests_of_what_is_returned
from trueloop.doctor.static.interpreter.values import (
    Class,
    Constant,
    DictValue,
    Function,
    Instance,
    Sequence,
    Unknown,
    Value,
    inside,
    parts_of,
)

SWITCHES = ("train", "eval")
_MEMBERS = 200
"""Layers of a network that a function is applied to."""


@methods(Model, *SWITCHES)
def _mode(call: LibraryCall) -> Value:
    model: Model = call.receiver
    mode: bool | None = False
    if call.name == "train":
        mode = call.const(0, "mode", True)
        given = call.arg(0, "mode")
        # A mode that was remembered and is put back is what it was: unknown.
        if mode is None and given is not None and not _is_mode(given):
            mode = call.machine.decide(given)[0]
    own = None if _is_super(call) else own_switch(model, call.name)
    if own is not None:
        # It does what it does, and calls torch's by `super()`.
        if mode is False:
            call.emit(ModeSet, model=model, training=False)
        by_train = call.name == "eval" and own.name.endswith("train")
        asked = [Constant(False)] if by_train else call.args
        enter(call.machine, own, [model, *asked], call.kwargs, call.node)
        return model
    set_mode(call.machine, model, mode, call.node)
    return model


@calls("torch.nn.Module.train", "torch.nn.Module.eval")
def _mode_by_class(call: LibraryCall) -> Value:
    """`nn.Module.train(self, mode)`: what `super().train(mode)` does."""
    model = call.arg(0)
    if not isinstance(model, Model):
        return call.unknown(*call.args)
    mode = call.const(1, "mode", True) if call.name.endswith("train") else False
    set_mode(call.machine, model, mode, call.node)
    return model


def apply_switches(call: LibraryCall, model: Model) -> None:
    """`model.apply(freeze_norms)`: a function that switches the mode of some of the layers."""
    function = call.arg(0, "fn")
    if isinstance(function, Function) and _switches(function.node):
        for member in model.family()[:_MEMBERS]:
            call.machine.call_value(function, [member], node=call.node)


@once
def _switches(definition: ast.AST) -> bool:
    words = {each.attr for each in walk(definition) if isinstance(each, ast.Attribute)}
    return not words.isdisjoint({*SWITCHES, "training"})


@methods(Unknown, *SWITCHES)
def _mode_of_one_of_several(call: LibraryCall) -> Value:
    """`models[name].train()`: which of them it is, is not known, so the mode of none is."""
    for model in may_be(call.receiver):
        set_mode(call.machine, model, None, call.node)
    call.expose(*call.args)
    return call.unknown(call.receiver, *call.args)


@methods(Instance, *SWITCHES)
def _mode_of_foreign_kind(call: LibraryCall) -> Value:
    """The class extends one that cannot be read: it may be a module, or train the modules that it
    holds. These are in eval mode after `eval()`, and in some mode after `train()`."""
    mode = False if call.name == "eval" else None
    for part in call.receiver.attributes.values():
        if isinstance(part, Model):
            set_mode(call.machine, part, mode, call.node)
    call.expose(*call.args, *call.kwargs.values())
    return call.receiver  # type: ignore[no-any-return]


def may_be(element: Unknown) -> list[Model]:
    """The modules of a list or dict of which something unknown is an element."""
    several = (each for each in element.of if isinstance(each, (Sequence, DictValue)))
    parts = (part for whole in several for part in inside(whole, parts_of, 2))
    return [*dict.fromkeys(each for each in parts if isinstance(each, Model))]


def own_switch(model: Model, name: str) -> Function | None:
    """The `train` or `eval` of the user's class; torch's `eval` calls `train(False)`."""
    if not isinstance(model.cls, Class):
        return None
    found = model.cls.lookup(name)
    if name == "eval" and not isinstance(found, Function):
        found = model.cls.lookup("train")
    return found if isinstance(found, Function) else None


def set_mode(m: Interpreter, model: Model, mode: bool | None, node: ast.AST) -> None:
    """The effect of torch's `train(mode)`: on the module, and through their own `train` on its
    parts."""
    for member in model.family():
        member.training = mode
    m.emit(ModeSet, node, model=model, training=mode)
    if mode is not None:
        for part in _parts_with_their_own_switch(model):
            own = own_switch(part, "train")
            assert own is not None
            enter(m, own, [part, Constant(mode)], {}, node)


def _parts_with_their_own_switch(model: Model) -> list[Model]:
    """The outermost ones: each passes the mode on to its parts."""
    found: list[Model] = []
    seen, waiting = {model}, [*model.children.values()]
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        if own_switch(part, "train") is not None:
            found.append(part)
        else:
            waiting += part.children.values()
    return found


def _is_mode(value: Value) -> bool:
    return isinstance(value, Unknown) and value.key.endswith(".training")


def _is_super(call: LibraryCall) -> bool:
    function = getattr(call.node, "func", None)
    value = getattr(function, "value", None)
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "super"


def mode_of(m: Interpreter, model: Model, node: ast.AST) -> Value:
    """`model.training`; a module that asks for its own mode behaves differently in the two, unless
    it only returns more or less of what it has computed."""
    own = m.inside_models and m.receivers and m.receivers[-1] is model
    if own and id(node) not in tests_of_what_is_returned(m.modules[-1].tree):
        m.mode_asked = model, model.asks_mode
        model.asks_mode = True
    return Unknown(f"{model.name}.training") if model.training is None else Constant(model.training)


def write_mode(m: Interpreter, owner: Model, value: object, node: ast.AST) -> None:
    """`module.training = mode`: of this module only, but a loop over the parts comes to all."""
    mode = value.value if isinstance(value, Constant) else None
    name = getattr(getattr(node, "value", None), "id", "")
    if not owner.children or (m.turns and name in m.turns[-1].loop.variables):
        set_mode(m, owner, mode, node)
    owner.training = mode

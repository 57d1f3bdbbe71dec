"""Dropout that no mode reaches: layers that are made where they are called."""

from __future__ import annotations

import ast

from trueloop.doctor.model.events import FunctionalDropout
from trueloop.doctor.model.things import Model
from trueloop.doctor.model.vocabulary import tests_mode
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall
from trueloop.doctor.static.interpreter.syntax import once

_tests_mode = once(tests_mode)


@once
def _off_by_default(definition: ast.AST) -> frozenset[str]:
    """The parameters of a function that a caller has to turn on: `sample=False`."""
    if not isinstance(definition, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return frozenset()
    given = definition.args
    plain = [*given.posonlyargs, *given.args][::-1]
    pairs = [*zip(plain, given.defaults[::-1], strict=False)]
    pairs += [(a, d) for a, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d]
    return frozenset(
        each.arg
        for each, default in pairs
        if isinstance(default, ast.Constant) and default.value in (None, False)
    )


def notice_dropout_of_a_call(call: LibraryCall) -> None:
    """`nn.Dropout(0.5)(x)` in a `forward`: it is in train mode, whatever mode the module is in."""
    layer: Model = call.receiver
    made, here = layer.made, call.place
    if layer.parents or made[:1] != here[:1] or made.function != here.function:
        return
    call.emit(
        FunctionalDropout,
        function=layer.kind.rpartition(".")[2],
        p=layer.arguments.get("p"),
        training=False,
        module=module_around(call),
        asks_mode=mode_is_asked(call),
    )


def module_around(call: LibraryCall) -> Model | None:
    """The module in whose method a call is, the innermost one."""
    receivers = reversed(call.machine.receivers)
    return next((each for each in receivers if isinstance(each, Model)), None)


def mode_is_asked(call: LibraryCall) -> bool:
    """A condition in the module's method, or in what it calls, asks for the mode, or the caller
    asks for dropout."""
    m = call.machine
    if m.calls and not _off_by_default(m.calls[-1][1]).isdisjoint(m.guards):
        return True
    first = next((i for i, each in enumerate(m.receivers) if isinstance(each, Model)), None)
    if first is None:
        return False
    definitions = [definition for _, definition in m.calls[first - len(m.receivers) :]]
    return any(_tests_mode(definition) for definition in definitions)

"""Parameters and gradients that are changed without an optimizer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from trueloop.doctor.model.events import GradEdited, ManualUpdate, ZeroGrad
from trueloop.doctor.model.things import Scaler, Tensor
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.stub_lookup import LibraryCall, calls, methods
from trueloop.doctor.static.interpreter.values import (
    NONE,
    Constant,
    Sequence,
    Unknown,
    Value,
    inside,
    parts_of,
)

_PARTS = 4
"""Parts of a value that are looked into."""


def owner_of(tensor: object) -> tuple[str, Tensor | None]:
    """The meaning of a tensor: `grad` or `data` of which parameter; or a parameter itself."""
    if isinstance(tensor, Tensor):
        if tensor.grad_of is not None:
            return "grad", tensor.grad_of
        if tensor.data_of is not None:
            return "data", tensor.data_of
        if tensor.role == "parameter":
            return "parameter", tensor
    return "", None


def notice(m: Interpreter, target: object, value: object, node: ast.AST, how: str = "set") -> None:
    """`target op= value` or an in-place method: an update by hand, or an edited gradient."""
    word, parameter = owner_of(target)
    if word == "grad":
        if how in ("scaled", "clipped"):
            cuts = how == "clipped" or is_measured(value)
            how = "clipped" if cuts and not hangs_on_scale(value) else "scaled"
        m.emit(GradEdited, node, target=parameter, how=how)
    elif word == "data" or (word == "parameter" and not m.recording):
        m.emit(ManualUpdate, node, target=parameter)


def hangs_on_scale(value: object) -> bool:
    """A number was computed from the loss scale: `limit * scaler.get_scale()`."""

    def parts(each: Value) -> Iterable[Value]:
        return each.of if isinstance(each, Unknown) else parts_of(each)

    return any(isinstance(each, Scaler) for each in inside(value, parts, 8))


def is_measured(value: object, depth: int = 12) -> bool:
    """A value was computed from gradients, like their norm, through plain numbers too."""
    if isinstance(value, Tensor):
        return value.of_gradients
    if isinstance(value, Sequence):
        return any(is_measured(each, depth - 1) for each in value.values[:_PARTS] if depth)
    if isinstance(value, Unknown):
        return any(is_measured(each, depth - 1) for each in value.of[:_PARTS] if depth)
    return False


def cleared(m: Interpreter, parameter: Tensor | None, node: ast.AST) -> None:
    """A gradient was set to None or zero by hand."""
    models = list(parameter.models) if parameter is not None else []
    target: Any = parameter
    if parameter is not None and parameter.role == "parameter" and len(models) == 1:
        target = models[0]
    if not models and (parameter is None or not parameter.requires_grad):
        target = None
    m.emit(ZeroGrad, node, target=target, by_hand=True)


GRADIENT = ("grad", "_grad")
"""Attributes that hold a parameter's gradient: A3C's workers often use the second one."""


def set_gradient(
    m: Interpreter, parameter: Tensor | None, name: str, value: object, node: ast.AST
) -> None:
    """`p.grad = value`, `p.grad.data = value`, or `p.grad_sample = value`: from a gradient for each
    sample Opacus' optimizers make the gradient. `parameter`: None for something that is not known,
    as in a nested function that takes it from the function around."""
    if name == "data" and parameter is not None and parameter.grad_of is not None:
        parameter, name = parameter.grad_of, "grad"
    if name in GRADIENT and is_nothing(value):
        cleared(m, parameter, node)
    elif name in (*GRADIENT, "grad_sample") and not is_nothing(value):
        m.emit(GradEdited, node, target=parameter)


@methods(Unknown, "zero_")
def _zero_of_unknown(call: LibraryCall) -> Value:
    """`p.grad.zero_()`, `p.grad.data.zero_()`."""
    call.expose(call.receiver)
    if call.receiver.key.removesuffix(".data").endswith(".grad"):
        cleared(call.machine, None, call.node)
    return call.unknown(call.receiver)


@calls("torch._foreach_zero_")
def _zero_together(call: LibraryCall) -> Value:
    """`torch._foreach_zero_([p.grad for p in parameters])`."""
    given = call.arg(0)
    owners = [owner_of(each) for each in given.values] if isinstance(given, Sequence) else []
    known = {id(each): each for word, each in owners if word == "grad"}
    for parameter in known.values() or (None,):
        cleared(call.machine, parameter, call.node)
    return NONE


def clears_by_name(m: Interpreter, callee: str, node: ast.AST) -> None:
    """`clear_gradients(parameters)`, of code that cannot be read, whatever it is given."""
    if _clears(callee):
        cleared(m, None, node)


_CLEARS = re.compile(r"(zero|clear|reset|drop|delete|free)_?\w*grad", re.I)


@lru_cache(maxsize=1024)
def _clears(callee: str) -> bool:
    return _CLEARS.search(callee.rpartition(".")[2]) is not None


def is_nothing(value: object) -> bool:
    return isinstance(value, Constant) and not value.value

"""Calls of generator functions that yield windows of micro-batches. A loop over one goes through
windows, and a loop over a window takes new batches."""

from __future__ import annotations

import ast

from trueloop.doctor.model.window_makers import windows_in
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.passing_generators import argument
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import CombinedIterable, Constant, Function, Value


def windows_of(
    m: Interpreter, function: Function, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """The windows that a call of such a function yields; None for other generator functions."""
    found = _windows_in(function.node)
    if found is None:
        return None
    source = _given(m, function, args, kwargs, found.source)
    size = _given(m, function, args, kwargs, found.size)
    if source is None or size is None:
        return None
    return CombinedIterable("windows", [source, size, Constant(found.with_rest)])


def _given(
    m: Interpreter,
    function: Function,
    args: list[Value],
    kwargs: dict[str, Value],
    node: ast.expr,
) -> Value | None:
    """The value of a constant, of a parameter, or of an attribute of one."""
    if isinstance(node, ast.Constant):
        return Constant(node.value)
    if isinstance(node, ast.Attribute):
        held = _given(m, function, args, kwargs, node.value)
        return None if held is None else m.attribute(held, node.attr, node)
    return argument(function, args, kwargs, node.id) if isinstance(node, ast.Name) else None


_windows_in = once(windows_in)

"""User-defined decorators: the function or class that a definition binds."""

from __future__ import annotations

import ast

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.calls import call
from trueloop.doctor.static.interpreter.ignite_loop import EventDecorator
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.syntax import once
from trueloop.doctor.static.interpreter.values import (
    Class,
    DictValue,
    Function,
    Method,
    Sequence,
    Value,
    inside,
    parts_of,
)

REGISTERED = 8
"""Calls of a decorator after which it counts as a registry: it returned what it got, each time."""


def decorate(
    m: Interpreter, defined: Function | Class, decorators: list[Value], node: ast.AST
) -> Value:
    """The value that a definition binds once the user's own decorators have seen it."""
    value: Value = defined
    kinds = (Function, Method) if isinstance(defined, Function) else Class
    for decorator in reversed(decorators):
        if isinstance(decorator, EventDecorator) and isinstance(defined, Function):
            decorator.engine.listen(
                m, decorator.event, defined, decorator.args, decorator.kwargs, node
            )
        if not isinstance(decorator, (Function, Method)):
            continue
        inner = decorator.function if isinstance(decorator, Method) else decorator
        times = m.registered.get(id(inner.node), 0)
        if times >= REGISTERED:
            _leave_tables_open(m, decorator, node)
            continue
        wrapped = call(m, decorator, [value], {}, node)
        same = wrapped is value and times >= 0
        m.registered[id(inner.node)] = times + 1 if same else -1
        if isinstance(wrapped, kinds):
            value = wrapped
    return value


def _leave_tables_open(m: Interpreter, decorator: Function | Method, node: ast.AST) -> None:
    """A decorator that returns what it is given, time after time, writes it down somewhere."""
    inner = decorator.function if isinstance(decorator, Method) else decorator
    if m.registered[id(inner.node)] > REGISTERED:
        return
    m.registered[id(inner.node)] += 1
    held = [decorator.receiver] if isinstance(decorator, Method) else []
    for name in _names_read(inner.node):
        holder = inner.scope.find(name)
        if holder is not None and name in holder.variables:
            held.append(holder.variables[name])
    for value in held:
        for each in inside(value, parts_of, 3):
            m.look(node)
            if isinstance(each, (Sequence, DictValue)):
                each.open = True


@once
def _names_read(node: ast.AST) -> frozenset[str]:
    return frozenset(each.id for each in walk(node) if isinstance(each, ast.Name))

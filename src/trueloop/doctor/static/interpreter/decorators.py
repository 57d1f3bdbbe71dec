"""User-defined decorators: the function or class that a definition binds."""

from __future__ import annotations

import ast

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.interpreter.calls import call
from trueloop.doctor.static.interpreter.ignite_loop import EventDecorator
from trueloop.doctor.static.interpreter.interpreter import Interpreter
from trueloop.doctor.static.interpreter.survey import last_name
from trueloop.doctor.static.interpreter.syntax import once, written
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
        if _only_passes_on(inner.node):
            continue
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


_ASIDE = frozenset("print time perf_counter monotonic process_time debug info log format".split())
"""Functions and methods that a wrapper may call without changing what it wraps."""


@once
def _only_passes_on(decorator: ast.AST) -> bool:
    """It returns a function that calls the decorated one with all its arguments, returns its
    result, and may take the time or print."""
    if not isinstance(decorator, ast.FunctionDef):
        return False
    body = [*decorator.body]
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        del body[0]
    inner, last = body if len(body) == 2 else (None, None)
    if not isinstance(inner, ast.FunctionDef) or not isinstance(last, ast.Return):
        return False
    given, spec = decorator.args.args, inner.args
    if getattr(last.value, "id", "") != inner.name or not all(map(_is_wraps, inner.decorator_list)):
        return False
    if len(given) != 1 or spec.args or not (spec.vararg and spec.kwarg):
        return False
    whole = f"{given[0].arg}(*{spec.vararg.arg}, **{spec.kwarg.arg})"
    calls = [each for each in walk(ast.Module(inner.body, [])) if isinstance(each, ast.Call)]
    passed = [each for each in calls if written(each) == whole]
    aside = all(last_name(each.func) in _ASIDE for each in calls if each not in passed)
    plain = all(isinstance(each, (ast.Assign, ast.Expr, ast.Return)) for each in inner.body)
    end = inner.body[-1]
    returned = end.value if isinstance(end, ast.Return) else None
    if len(passed) != 1 or not aside or not plain or returned is None:
        return False
    held = [
        each.targets[0]
        for each in inner.body
        if isinstance(each, ast.Assign) and each.value is passed[0]
    ]
    return returned is passed[0] or [written(returned)] == [written(each) for each in held]


def _is_wraps(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and last_name(decorator.func) == "wraps"


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

"""`with`: the modes inside a block."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from trueloop.doctor.model.things import Thing
from trueloop.doctor.static.interpreter.interpreter import ControlFlow, Interpreter
from trueloop.doctor.static.interpreter.values import (
    NONE,
    GeneratorContext,
    Instance,
    OpaqueObject,
    Scope,
    Value,
    constant,
)

Body = Callable[[], "ControlFlow | None"]


def entered(
    m: Interpreter, items: list[ast.withitem], body: list[ast.stmt], scope: Scope, node: ast.AST
) -> ControlFlow | None:
    """Run a block inside the contexts of a `with`."""
    if not items:
        return m.run_block(body, scope)
    item, *rest = items
    context = m.evaluate(item.context_expr, scope)

    def inside() -> ControlFlow | None:
        with m.nested(node) as may_go:
            return entered(m, rest, body, scope, node) if may_go else None

    def bind(value: Value) -> None:
        if item.optional_vars is not None:
            m.assign(item.optional_vars, value, scope)

    return within(m, context, inside, bind, item.context_expr)


def within(
    m: Interpreter, context: Any, inside: Body, bind: Callable[[Any], None], node: ast.AST
) -> ControlFlow | None:
    """Run something inside one context."""
    if isinstance(context, OpaqueObject):
        bind(context.entered or context)
        return inside_foreign(m, context, inside)
    if isinstance(context, Instance) and context.cls.lookup("__enter__") is not None:
        bind(m.call_value(m.attribute(context, "__enter__", node), [], node=node))
        signal = inside()
        leave = m.attribute(context, "__exit__", node)
        m.call_value(leave, [NONE, NONE, NONE], node=node)
        return signal
    if isinstance(context, GeneratorContext):
        return inside_generator(m, context, inside, bind, node)
    bind(context if isinstance(context, Thing) else m.unknown(node, (context,)))
    return inside()


def inside_foreign(m: Interpreter, context: OpaqueObject, inside: Body) -> ControlFlow | None:
    """A context of torch's (or of a different library's) that changes the modes inside."""
    if context.grad is not None:
        m.grad.append(context.grad)
    if context.autocast != "":
        m.autocast.append(context.autocast)
    m.forked += context.forks_rng
    try:
        return inside()
    finally:
        if context.grad is not None:
            m.grad.pop()
        if context.autocast != "":
            m.autocast.pop()
        m.forked -= context.forks_rng


def inside_generator(
    m: Interpreter,
    context: GeneratorContext,
    inside: Body,
    bind: Callable[[Any], None],
    node: ast.AST,
) -> ControlFlow | None:
    """A function under `@contextmanager`: the block runs at its `yield`."""
    found: list[ControlFlow | None] = []

    def on_yield(value: Value) -> Value:
        if not found:
            bind(value)
            found.append(inside())
        return NONE

    m.enter(context.function, context.args, context.kwargs, node, on_yield)
    if not found:
        # The function never got to its `yield` here: the block runs all the same.
        found.append(inside())
    return found[0]


def autocast_of(dtype: Value | None, enabled: Value | None, device: str | None) -> str | None:
    """The dtype in which an autocast block computes: see `events.Event.autocast`."""
    on = constant(enabled, "?") if enabled is not None else True
    if on is False:
        return None
    name = getattr(dtype, "name", "") if dtype is not None else ""
    short = name.rpartition(".")[2]
    if on == "?":
        return "unknown"
    if dtype is None:
        return {"cuda": "float16", "cpu": "bfloat16"}.get(device or "", "unknown")
    return {"half": "float16"}.get(short, short) if short else "unknown"
